"""The report of a run as one page that opens in any browser, without a network."""
