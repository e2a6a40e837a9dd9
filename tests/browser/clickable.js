async selector => {
  // The middle of an element that can be clicked; throws while it cannot.
  const element = document.querySelector(selector);
  if (!element) throw 'there is no such element';
  if (!element.checkVisibility({ visibilityProperty: true })) throw 'it is not visible';
  if (element.disabled) throw 'it is disabled';
  const box = () => element.getClientRects()[0] ?? new DOMRect();
  const middle = () => {
    const { x, y, width, height } = box();
    if (!width || !height) throw 'it has no size';
    const at = { x: x + width / 2, y: y + height / 2 };
    const hit = document.elementFromPoint(at.x, at.y);
    if (!element.contains(hit)) throw `it is covered by ${hit ? hit.cloneNode().outerHTML : 'nothing: it is out of sight'}`;
    return at;
  };
  const { top, left, bottom, right } = box();
  if (top < 0 || left < 0 || bottom > innerHeight || right > innerWidth) {
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
  }
  const before = middle();
  // In its first frame a transition has not moved anything yet.
  for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
  const now = middle();
  if (before.x !== now.x || before.y !== now.y) throw 'it moves';
  return now;
}
