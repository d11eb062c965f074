"""The one-step tables of papers on online forecasting: data -> protocol -> contenders -> run -> page."""
