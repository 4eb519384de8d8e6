// What a panel holds at rest goes into the address at once, beside what controls have put there meanwhile;
// an empty text is the default and stays out.
function keepInAddress(texts) {
  const address = new URL(location.href);
  for (const [key, text] of Object.entries(texts)) {
    if (text) address.searchParams.set(key, text);
    else address.searchParams.delete(key);
  }
  address.search = address.search.replaceAll("%7E", "~"); // shorter, and as the server spells it
  if (address.href !== location.href) history.replaceState(history.state, "", address);
}
