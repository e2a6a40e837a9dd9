// The visible texts of a page, for the checks that follow in the same function.

const shorten = (text, length = 60) => text.trim().replace(/\s+/g, ' ').slice(0, length);

// A CSS path that selects this element alone.
const pathOf = element => {
  const parts = [];
  for (let at = element; at; at = at.parentElement) {
    const id = at.id && '#' + CSS.escape(at.id);
    if (id && document.querySelectorAll(id).length === 1) {
      parts.unshift(id);
      break;
    }
    const alike = [...(at.parentElement?.children ?? [])].filter(other => other.localName === at.localName);
    parts.unshift(at.localName + (alike.length > 1 ? `:nth-of-type(${alike.indexOf(at) + 1})` : ''));
  }
  return parts.join(' > ');
};

const finding = (check, element, text, says) => ({ check, path: pathOf(element), text: shorten(text), says });

// The elements that clip this one, innermost first, each with its style and its box inside of the border; and whether it is
// fixed to the viewport. What html and body clip, the viewport clips.
const clipsOf = element => {
  const clips = [];
  let skips = null;
  for (let at = element; at && at !== document.body && at !== document.documentElement; at = at.parentElement) {
    const style = getComputedStyle(at);
    const isContained = /paint|strict|content/.test(style.contain);
    const holdsFixed = isContained || style.transform !== 'none' || style.filter !== 'none';
    if (holdsFixed || skips === 'absolute' && style.position !== 'static') skips = null;
    const hasOverflow = at instanceof SVGElement
      ? /^(svg|foreignObject)$/.test(at.localName)
      : !/^(inline|contents)$/.test(style.display);
    const [x, y] = [style.overflowX, style.overflowY].map(value => isContained && value === 'visible' ? 'clip' : value);
    if (!skips && hasOverflow && (x !== 'visible' || y !== 'visible')) {
      const outer = at.getBoundingClientRect();
      const box = at instanceof SVGElement ? outer
        : new DOMRect(outer.x + at.clientLeft, outer.y + at.clientTop, at.clientWidth, at.clientHeight);
      clips.push({ element: at, style, x, y, box });
    }
    if (/absolute|fixed/.test(style.position)) skips = style.position;
  }
  return { clips, isFixed: skips === 'fixed' };
};

// Whether only a screen reader gets it: clipped to nothing, as a closed part is too.
const isClippedAway = (element, clips) => {
  const isEmpty = ({ box, x, y }) => (box.width <= 1 && x !== 'visible') || (box.height <= 1 && y !== 'visible');
  if (clips.some(isEmpty)) return true;
  for (let at = element; at; at = at.parentElement) {
    const { clip, clipPath } = getComputedStyle(at);
    if (/^rect\((0px|1px)(,? (0px|1px)){3}\)$/.test(clip) || /^inset\((50|100)%/.test(clipPath)) return true;
  }
  return false;
};

const isShown = element =>
  element.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });

// Each text node that a person can see, or scroll to: its boxes are in the coordinates of the viewport, one per line.
const visibleTexts = () => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !isShown(element) || element.closest('select, textarea')) continue;
    const range = new Range();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter(box => box.width > 0 && box.height > 0);
    const { clips, isFixed } = clipsOf(element);
    if (boxes.length && !isClippedAway(element, clips)) found.push({ element, text: node.data, boxes, clips, isFixed });
  }
  return found;
};

// A transition shows a state in between, and a late font other widths.
const settled = async () => {
  await document.fonts.ready;
  for (const animation of document.getAnimations()) if (animation instanceof CSSTransition) animation.finish();
};
