// Texts with too little contrast to their background. Colours are [red, green, blue, alpha], the alpha from 0 to 1.

const MINIMUM = 4.5;

const context = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
const colours = new Map();
// Any CSS colour, as the browser itself understands it.
const colourOf = css => {
  if (!colours.has(css)) {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = 'transparent';
    context.fillStyle = css;
    context.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data;
    colours.set(css, [red, green, blue, alpha / 255]);
  }
  return colours.get(css);
};
const fade = ([red, green, blue, alpha], opacity) => [red, green, blue, alpha * opacity];
const over = (top, below) => {
  const alpha = top[3] + below[3] * (1 - top[3]);
  if (!alpha) return [0, 0, 0, 0];
  return [0, 1, 2].map(n => (top[n] * top[3] + below[n] * below[3] * (1 - top[3])) / alpha).concat(alpha);
};
const luminance = colour => {
  const linear = value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const [red, green, blue] = colour.map(value => linear(value / 255));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const ratio = (one, other) => {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const printed = colour => '#' + colour.slice(0, 3).map(value => Math.round(value).toString(16).padStart(2, '0')).join('');

const stopsOf = gradient => (gradient.match(/(rgba?|color|oklch|oklab|lab|lch|hsla?)\([^()]*\)/g) ?? []).map(colourOf);
// The colours that an element may draw at a point: several for a gradient, and null where they cannot be determined.
const drawnAt = (element, x, y) => {
  const style = getComputedStyle(element);
  if (/^(img|video|canvas|iframe|object|embed|image)$/.test(element.localName)) return null;
  if (element.ownerSVGElement) {
    if (!(element instanceof SVGGeometryElement)) return [];
    const point = new DOMPoint(x, y).matrixTransform(element.getScreenCTM().inverse());
    const isFilled = style.fill !== 'none' && element.isPointInFill(point);
    const [paint, opacity] = isFilled ? [style.fill, style.fillOpacity] : [style.stroke, style.strokeOpacity];
    if (paint === 'none') return [];
    return paint.startsWith('url') ? null : [fade(colourOf(paint), Number(opacity))];
  }
  if (style.backgroundImage.includes('url(')) return null;
  const colour = colourOf(style.backgroundColor);
  const stops = stopsOf(style.backgroundImage).map(stop => over(stop, colour));
  return stops.length ? stops : colour[3] ? [colour] : [];
};

// The colour below everything.
const canvas = () => {
  const probe = document.createElement('span');
  probe.style.color = 'Canvas';
  document.body.append(probe);
  const system = colourOf(getComputedStyle(probe).color);
  probe.remove();
  const own = [document.documentElement, document.body].map(element => colourOf(getComputedStyle(element).backgroundColor));
  return over(own.find(colour => colour[3]) ?? [0, 0, 0, 0], system);
};

const ancestors = element => element ? [element, ...ancestors(element.parentElement)] : [];
// An element with `display: contents` has no box to hit.
const boxed = element => ancestors(element).find(at => getComputedStyle(at).display !== 'contents');
const opacityOf = element => Number(getComputedStyle(element).opacity);

// Draws layers from the lowest on. Those in a group with an opacity are drawn together first; the groups are outermost first.
const draw = (base, layers, groups) => {
  const [group, ...inner] = groups;
  const isInside = layer => group?.contains(layer.element);
  const ownOpacity = layer =>
    ancestors(layer.element).filter(at => !layer.groups.includes(at)).reduce((opacity, at) => opacity * opacityOf(at), 1);
  const drawOne = (colour, layer) => over(fade(layer.colour, ownOpacity(layer)), colour);
  const below = layers.filter(layer => !isInside(layer)).reduce(drawOne, base);
  if (!group) return below;
  return over(fade(draw([0, 0, 0, 0], layers.filter(isInside), inner), opacityOf(group)), below);
};

// The pair of colours with the least contrast at a point; undefined where it cannot be determined.
const worstAt = ({ element, colour, own }, [x, y], base) => {
  const stack = document.elementsFromPoint(x, y);
  const place = stack.indexOf(boxed(element));
  const isHidden = stack.slice(0, place).some(at => drawnAt(at, x, y)?.some(colour => colour[3] * opacityOf(at) > 0.95));
  if (isHidden) return undefined;
  const groups = ancestors(element).filter(at => opacityOf(at) < 1).reverse();
  let backgrounds = [[]];
  for (const at of stack.slice(place).reverse()) {
    const drawn = drawnAt(at, x, y);
    const layer = colour => ({ element: at, colour, groups });
    if (!drawn) backgrounds = null;
    else if (!backgrounds && drawn.some(colour => colour[3] === 1)) backgrounds = drawn.map(colour => [layer(colour)]);
    else if (backgrounds && drawn.length) {
      backgrounds = backgrounds.flatMap(layers => drawn.map(colour => [...layers, layer(colour)])).slice(0, 32);
    }
  }
  const pairs = backgrounds?.map(layers => {
    const all = own ? [...layers, { element, colour: own, groups }] : layers;
    return [draw(base, [...all, { element, colour, groups }], groups), draw(base, all, groups)];
  });
  return pairs?.sort((one, other) => ratio(...one) - ratio(...other))[0];
};

const textColour = (element, style = getComputedStyle(element)) => {
  if (!element.ownerSVGElement) return colourOf(style.webkitTextFillColor);
  return style.fill === 'none' || style.fill.startsWith('url') ? null : fade(colourOf(style.fill), Number(style.fillOpacity));
};

// What a control shows, which is no text node.
const controlTexts = () => [...document.querySelectorAll('input, textarea, select')].filter(isShown).flatMap(element => {
  if (/^(hidden|checkbox|radio|range|color|file|image)$/.test(element.type)) return [];
  const value = element.selectedOptions?.[0]?.text ?? element.value;
  if (value) return [{ element, text: value, colour: textColour(element) }];
  const style = getComputedStyle(element, '::placeholder');
  const colour = fade(textColour(element, style), Number(style.opacity));
  return element.placeholder ? [{ element, text: element.placeholder, colour }] : [];
});

const generatedTexts = () => [...document.body.querySelectorAll('*')].filter(isShown).flatMap(element =>
  ['::before', '::after'].flatMap(pseudo => {
    const style = getComputedStyle(element, pseudo);
    const text = /^"(.*?)"/.exec(style.content)?.[1].trim();
    if (!text || style.display === 'none' || style.visibility !== 'visible' || style.opacity === '0') return [];
    const colour = fade(textColour(element, style) ?? [0, 0, 0, 0], Number(style.opacity));
    return [{ element, text, colour, own: colourOf(style.backgroundColor) }];
  }));

const boxOf = ({ element, text }) => {
  const node = [...element.childNodes].find(node => node.nodeType === Node.TEXT_NODE && node.data === text);
  if (!node) return element.getBoundingClientRect();
  const range = new Range();
  range.selectNodeContents(node);
  return [...range.getClientRects()].find(box => box.width && box.height);
};

await settled();
// All elements must be hit by a point, also those that leave the mouse to others.
const hits = new CSSStyleSheet();
hits.replaceSync('* { pointer-events: auto !important }');
document.adoptedStyleSheets = [...document.adoptedStyleSheets, hits];
const scrolled = new Map();
const found = [];
const base = canvas();
const texts = visibleTexts().map(text => ({ ...text, colour: textColour(text.element) }));
for (const text of [...texts, ...controlTexts(), ...generatedTexts()]) {
  const { element, colour } = text;
  if (!colour?.[3] || element.closest(':disabled, [aria-disabled=true]')) continue;
  const points = () => {
    const { x, y, width, height } = boxOf(text);
    const edge = Math.min(2, width / 2);
    const all = [x + edge, x + width / 2, x + width - edge].map(x => [x, y + height / 2]);
    return all.filter(([x, y]) => document.elementsFromPoint(x, y).includes(boxed(element)));
  };
  if (points().length < 3) {
    for (const at of ancestors(element)) if (!scrolled.has(at)) scrolled.set(at, [at.scrollLeft, at.scrollTop]);
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
  }
  const pairs = points().map(point => worstAt(text, point, base)).filter(Boolean);
  const [worst] = pairs.sort((one, other) => ratio(...one) - ratio(...other));
  if (worst && ratio(...worst) < MINIMUM) {
    const says = `${ratio(...worst).toFixed(2)} : 1, ${printed(worst[0])} on ${printed(worst[1])}`;
    found.push(finding('contrast', element, text.text, says));
  }
}
for (const [element, [left, top]] of scrolled) element.scrollTo({ left, top, behavior: 'instant' });
document.adoptedStyleSheets = document.adoptedStyleSheets.filter(sheet => sheet !== hits);
return found;
