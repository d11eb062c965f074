// Light or dark, decided before the first paint so that a dark page never flashes white: hence a plain script.
(() => {
  const root = document.documentElement;
  const system = matchMedia('(prefers-color-scheme: dark)');
  const ofSystem = () => (system.matches ? 'dark' : 'light');
  let chosen = '';
  // A browser may refuse storage altogether; the choice then lasts as long as the page.
  try { chosen = localStorage.getItem('varnn-theme'); } catch { /* see above */ }

  function apply() {
    root.dataset.theme = chosen || ofSystem();
    dispatchEvent(new Event('themechange'));
  }

  window.toggleTheme = () => {
    const next = root.dataset.theme === 'dark' ? 'light' : 'dark';
    chosen = next === ofSystem() ? '' : next; // back at the system's own choice, follow the system again
    try { localStorage.setItem('varnn-theme', chosen); } catch { /* see above */ }
    apply();
  };
  system.addEventListener('change', apply);
  apply();
})();
