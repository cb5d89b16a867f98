// The least that an HTTP server in Node can do: the same bytes to everybody. Started by the api benchmark.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const { headers, body } = JSON.parse(process.argv[2] ?? '{}') as { headers: Record<string, string>; body: string }
const server = createServer((_request, response) => {
  response.writeHead(200, headers)
  response.end(body)
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
