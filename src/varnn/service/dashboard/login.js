// Give a token, get a cookie that scripts cannot read; then on to where one wanted to be.
import { refusal } from './api.js';
import { say } from './dom.js';

const form = document.getElementById('login');
const problem = document.getElementById('problem');

// Where a form came without scripts, the service says so in the address.
if (location.search === '?refused') say(problem, 'This token is wrong, revoked or expired.');

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  say(problem, '');
  try {
    const response = await fetch('/login', {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ token: form.token.value.trim() }),
    });
    if (response.ok) {
      location.replace(`/${location.hash}`);
      return;
    }
    say(problem, (await refusal(response)).message);
  } catch {
    say(problem, 'The service does not answer. Is it running?');
  }
  form.token.select();
});
