// Who this browser is in a room: a random word, kept here alone, one a room; and, for who opened the room, its key.
const [MEMBERS, KEPT] = ["losslab.rooms", 3 * 3600 * 1000]; // ms after the last use of a room
const OPENED = "losslab.room ";

function random() {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// A reload, or a tab closed and opened again, is the same member.
function memberOf(code) {
  window.losslabMembers = window.losslabMembers || {};
  const now = Date.now();
  try {
    const all = Object.entries(JSON.parse(localStorage.getItem(MEMBERS)) || {});
    window.losslabMembers = Object.fromEntries(all.filter(([, { used }]) => now - used < KEPT));
  } catch { /* nothing may be kept: a reload is another member */ }
  const name = (window.losslabMembers[code] || {}).name || random();
  window.losslabMembers[code] = { name, used: now };
  try { localStorage.setItem(MEMBERS, JSON.stringify(window.losslabMembers)); } catch { /* as above */ }
  return name;
}

function keyOf({ code, key }) {
  try {
    if (key) sessionStorage.setItem(OPENED + code, key);
    return sessionStorage.getItem(OPENED + code) || "";
  } catch { return key; }
}

export default function mount({ data, setStateValue, parentElement }) {
  const key = keyOf(data);
  const told = { code: data.code, member: key ? "" : memberOf(data.code), key };
  const text = JSON.stringify(told);
  if (parentElement.losslabTold === text) return;
  parentElement.losslabTold = text;
  setStateValue("told", told);
}
