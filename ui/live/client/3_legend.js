// Pictures of samples, and the legend of the map.

// A sample's picture as an image element; its data is made once. Canvases would be a layer each to the browser.
function thumbnail(images, sample, size) {
  const picture = document.createElement("img");
  picture.width = size;
  picture.height = size;
  picture.className = "thumbnail";
  picture.alt = "sample " + sample;
  images.made = images.made || new Map();
  if (!images.made.has(sample) && sample < images.count) images.made.set(sample, encodePicture(images, sample));
  picture.src = images.made.get(sample) || "";
  return picture;
}

function encodePicture(images, sample) {
  const canvas = document.createElement("canvas");
  canvas.width = images.width;
  canvas.height = images.height;
  const area = images.width * images.height;
  const picture = new ImageData(images.width, images.height);
  for (let p = 0; p < area; p += 1) {
    const grey = images.pixels[sample * area + p];
    picture.data.set([grey, grey, grey, 255], 4 * p);
  }
  canvas.getContext("2d").putImageData(picture, 0, 0);
  return canvas.toDataURL();
}

// A class's name as a person gave it, of any length; `hello.classes` is cut to fit.
const wholeName = (hello, c) => (hello.labels || hello.classes)[c];

// The legend: one button a class that hides or shows it; marker and name, so colour is never alone.
function drawLegend(list, map, theme, redraw) {
  list.replaceChildren(...map.hello.classes.map((name, c) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "class";
    button.setAttribute("aria-pressed", String(!map.hidden.has(c)));
    button.title = "Hide or show class " + wholeName(map.hello, c) + "; with Shift, or while Select is on, select it";
    const icon = document.createElement("canvas");
    const ratio = window.devicePixelRatio || 1;
    icon.width = 16 * ratio;
    icon.height = 16 * ratio;
    const ctx = icon.getContext("2d");
    ctx.scale(ratio, ratio);
    drawShape(ctx, classShape(c), 8, 8, 4.6, classColour(theme, c), theme.background);
    button.append(icon, document.createTextNode(name));
    button.onclick = (event) => {
      if (map.onClass && (map.selecting || event.shiftKey)) return map.onClass(c);
      if (!map.hidden.delete(c)) map.hidden.add(c);
      button.setAttribute("aria-pressed", String(!map.hidden.has(c)));
      return redraw();
    };
    return button;
  }));
}
