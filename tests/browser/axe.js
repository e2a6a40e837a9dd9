const { violations } = await axe.run(document, { resultTypes: ['violations'] });
return violations
  .filter(({ impact }) => impact === 'serious' || impact === 'critical')
  .flatMap(({ id, help, nodes }) => nodes.map(node => ({
    check: id,
    path: node.target.flat().join(' '),
    text: shorten(node.html, 120),
    says: `${help}: ${shorten(node.failureSummary, 300)}`,
  })));
