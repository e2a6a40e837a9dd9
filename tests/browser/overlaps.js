// Texts that are cut, outside of the page, larger than their box, or drawn over another text; and a page that scrolls sideways.

const root = document.documentElement;
const found = new Map();
const report = (check, element, text, says) => {
  const key = [check, pathOf(element), says].join();
  if (!found.has(key)) found.set(key, finding(check, element, text, says));
};

// The box of the letters: a line box has room above and below them.
const lettersIn = ({ x, y, width, height }) => new DOMRect(x + 1, y + 0.15 * height, Math.max(width - 2, 1), 0.7 * height);

// The names of what is measured on each axis.
const AXES = [
  { axis: 'x', start: 'left', end: 'right', position: 'scrollLeft', full: 'scrollWidth', part: 'clientWidth' },
  { axis: 'y', start: 'top', end: 'bottom', position: 'scrollTop', full: 'scrollHeight', part: 'clientHeight' },
];
const isScroller = overflow => overflow === 'auto' || overflow === 'scroll';
// The range in which a clip lets something be seen, by scrolling where that is possible.
const reachOf = ({ element, box, ...clip }, { axis, start, end, position, full, part }) => {
  if (!isScroller(clip[axis])) return [box[start], box[end]];
  const { direction, display, flexDirection } = clip.style;
  const flows = display.includes('flex') ? flexDirection : '';
  const isReversed = axis === 'x' ? (direction === 'rtl') !== (flows === 'row-reverse') : flows === 'column-reverse';
  const first = box[start] - element[position] - (isReversed ? element[full] - element[part] : 0);
  return [first, first + element[full]];
};

// Shortened on purpose: with dots, and with the whole text as a title.
const isShortened = ({ style }, axis) =>
  axis === 'x' ? style.textOverflow.includes('ellipsis') : style.webkitLineClamp !== 'none';
const hasTitle = (clip, element) => element.closest('[title]') || clip.element.querySelector('[title]');

const checkCut = ({ element, text, clips, isFixed }, letters) => {
  for (const sides of AXES) {
    const { axis, start, end } = sides;
    // Up to the innermost scroller, which can bring the text to any place.
    const active = clips.filter(clip => clip[axis] !== 'visible');
    const scroller = active.findIndex(clip => isScroller(clip[axis]));
    const cutting = active.slice(0, scroller < 0 ? undefined : scroller + 1).find(clip => {
      const [first, last] = reachOf(clip, sides);
      return letters[start] < first - 1 || letters[end] > last + 1;
    });
    if (!cutting) {
      if (scroller < 0) checkViewport(element, text, letters, sides, isFixed);
    } else if (!isShortened(cutting, axis)) {
      report('cut', element, text, `cut by ${pathOf(cutting.element)}`);
    } else if (!hasTitle(cutting, element)) {
      report('cut', element, text, 'shortened without a title');
    }
  }
};

const viewportHides = axis =>
  [root, document.body].some(element => /hidden|clip/.test(getComputedStyle(element)['overflow' + axis]));
const checkViewport = (element, text, letters, { axis, start, end }, isFixed) => {
  const size = axis === 'x' ? root.clientWidth : innerHeight;
  const scrolled = isFixed ? 0 : axis === 'x' ? scrollX : scrollY;
  const [first, last] = [letters[start] + scrolled, letters[end] + scrolled];
  // Off the page until it has the focus, or for screen readers only.
  if (last < 0 && (element.closest('a[href^="#"]') || last < -900)) return;
  const isEndless = axis === 'y' && !isFixed && !viewportHides('Y');
  if (first < -1 || (last > size + 1 && !isEndless)) {
    const range = `${axis} from ${Math.round(first)} to ${Math.round(last)} of ${size}`;
    report('outside', element, text, `outside of the page: ${range}`);
  }
};

// The box that a text was put into: the nearest one that is seen, or in an SVG a rectangle beside it.
const frameOf = (element, letters) => {
  if (element.ownerSVGElement) {
    const holds = ({ left, right, top, bottom }) => {
      const [x, y] = [(letters.left + letters.right) / 2, (letters.top + letters.bottom) / 2];
      return left < x && x < right && top < y && y < bottom;
    };
    const rects = [...element.closest('text').parentElement.querySelectorAll(':scope > rect')].filter(isShown);
    return rects.find(rect => holds(rect.getBoundingClientRect()));
  }
  const isSeen = at => {
    const { display, backgroundColor, borderInlineEndWidth } = getComputedStyle(at);
    return display !== 'inline' && (backgroundColor !== 'rgba(0, 0, 0, 0)' || borderInlineEndWidth !== '0px');
  };
  let at = element;
  while (at && !isSeen(at)) at = at.parentElement;
  return at;
};

const checkSpill = ({ element, text, clips, isFixed }, letters) => {
  const frame = frameOf(element, letters);
  if (!frame || isFixed || frame.contains(document.body)) return;
  const box = frame.getBoundingClientRect();
  for (const { axis, start, end } of AXES) {
    const isClipped = clips.some(clip => clip[axis] !== 'visible' && frame.contains(clip.element));
    if (!isClipped && (letters[start] < box[start] - 1 || letters[end] > box[end] + 1)) {
      report('spill', element, text, `sticks out of ${pathOf(frame)}`);
    }
  }
};

// A rotated text of an SVG is a quadrangle; any other is its box.
const quadOf = (element, letters) => {
  const matrix = element.ownerSVGElement && element.getScreenCTM?.();
  const isTurned = matrix && Math.abs(matrix.b) + Math.abs(matrix.c) > 0.01 * Math.abs(matrix.a) + 0.001;
  const box = isTurned ? lettersIn(element.getBBox()) : letters;
  const corners = [[box.left, box.top], [box.right, box.top], [box.right, box.bottom], [box.left, box.bottom]];
  return corners.map(([x, y]) => isTurned ? new DOMPoint(x, y).matrixTransform(matrix) : { x, y });
};

// Two convex shapes are apart when their shadows on a normal of one of the edges are.
const doMeet = (one, other) => [one, other].every(shape => shape.every((corner, n) => {
  const next = shape[(n + 1) % 4];
  const shadow = ({ x, y }) => x * (next.y - corner.y) - y * (next.x - corner.x);
  const [a, b] = [one.map(shadow), other.map(shadow)];
  return Math.max(...a) > Math.min(...b) && Math.max(...b) > Math.min(...a);
}));

const doCross = (one, other) =>
  one && other && one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

// What is seen of a box: less what the scrollers cut off that do not move the other text with it.
const seenBeside = ({ letters, clips }, other) => {
  let { left, top, right, bottom } = letters;
  for (const { element, box, x, y } of clips) {
    if (other.clips.some(shared => shared.element === element)) continue;
    if (x !== 'visible') [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
    if (y !== 'visible') [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
  }
  return left < right && top < bottom ? { left, top, right, bottom } : null;
};

// In a layer with a background of its own, such as a menu, a dialog or a header that stays: it hides what is below it.
const isInLayerOver = (element, other) => {
  let isOpaque = false;
  for (let at = element; at && !at.contains(other); at = at.parentElement) {
    const { backgroundColor, backgroundImage, position, zIndex } = getComputedStyle(at);
    isOpaque ||= backgroundImage !== 'none' || !/^rgba|\/|^transparent/.test(backgroundColor);
    const isLayer = /fixed|sticky/.test(position) || (position !== 'static' && zIndex !== 'auto')
      || at.matches(':modal, :popover-open');
    if (isLayer && isOpaque) return true;
  }
  return false;
};

const doOverlap = (one, other) =>
  one.element !== other.element
  && doCross(one.letters, other.letters)
  && doCross(seenBeside(one, other), seenBeside(other, one))
  && doMeet(quadOf(one.element, one.letters), quadOf(other.element, other.letters))
  && !isInLayerOver(one.element, other.element)
  && !isInLayerOver(other.element, one.element);

const checkOverlaps = boxes => {
  boxes.sort((one, other) => one.letters.top - other.letters.top);
  boxes.forEach((one, n) => {
    for (let m = n + 1; m < boxes.length && boxes[m].letters.top < one.letters.bottom; m++) {
      const other = boxes[m];
      if (!doOverlap(one, other)) continue;
      report('overlap', one.element, one.text, `overlaps "${shorten(other.text)}" of ${pathOf(other.element)}`);
    }
  });
};

const checkSideways = () => {
  if (navigator.maxTouchPoints && innerWidth > screen.width) {
    report('sideways', root, '', `laid out for ${innerWidth} px on a screen of ${screen.width}: is there a <meta name=viewport>?`);
    return;
  }
  if (root.scrollWidth <= root.clientWidth || viewportHides('X')) return;
  const isWide = element => {
    const { left, right } = element.getBoundingClientRect();
    return (right + scrollX > root.clientWidth + 1 || left + scrollX < -1) && isShown(element)
      && !clipsOf(element.parentElement).clips.some(({ x }) => x !== 'visible');
  };
  const wide = [...document.body.querySelectorAll('*')].filter(isWide);
  const innermost = wide.filter(element => !wide.some(other => other !== element && element.contains(other)));
  for (const element of innermost.length ? innermost.slice(0, 5) : [root]) {
    report('sideways', element, element.textContent, `the page is ${root.scrollWidth} px wide in a window of ${root.clientWidth}`);
  }
};

await settled();
const boxes = visibleTexts().flatMap(text => text.boxes.map(box => ({ ...text, letters: lettersIn(box) })));
for (const box of boxes) {
  checkCut(box, box.letters);
  checkSpill(box, box.letters);
}
checkOverlaps(boxes);
checkSideways();
return [...found.values()];
