// Parts of a panel that come in files of their own: each file pushes a function that makes one from the panel.
// A part may have
//   reset(hello)          another recording begins
//   message(kind, body)   a message of a kind the panel itself does not know
//   draw(frame, moment)   beside the slow views, at most every 150 ms while it trains
//   key(event)            true if the part took the key
// and may push drawings onto `panel.map.under` and `panel.map.over`, called with
// { ctx, at, frame, screen, width, height, theme, colourOf(c) }; `screen` holds x, y of every point, x NaN if unseen.
const PARTS = [];
