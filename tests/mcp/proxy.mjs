// Adds the credential that the conformance suite cannot send, and maps the suite's own address to that of the server. A host or
// origin that the suite forges stays as it is.
import http from 'node:http';

const [target, token] = process.argv.slice(2);
const own = (name) => name === `localhost:${server.address().port}` || name === `127.0.0.1:${server.address().port}`;
const server = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  if (own(headers.host)) headers.host = `127.0.0.1:${target}`;
  if (headers.origin && own(headers.origin.replace('http://', ''))) headers.origin = `http://127.0.0.1:${target}`;
  const options = { host: '127.0.0.1', port: target, path: request.url, method: request.method, headers };
  const forward = http.request(options, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  forward.on('error', () => response.writeHead(502).end());
  request.pipe(forward);
}).listen(0, '127.0.0.1', () => console.log(`http://localhost:${server.address().port}`));
