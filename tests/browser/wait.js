(async () => {
  const end = performance.now() + MILLIS;
  for (;;) {
    let thrown = null;
    try {
      const value = await (CONDITION);
      if (value) return { value: value instanceof Node ? true : value };
    } catch (error) {
      thrown = String(error);
    }
    if (performance.now() >= end) return { value: null, thrown };
    // A frame, or the next moment where no frames are drawn.
    await new Promise(next => { requestAnimationFrame(next); setTimeout(next, 50); });
  }
})()
