// For what supervises a container: exit code 0 while the service of this environment's settings answers.
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'

const { GAMEKEEPER_HOST: host = '127.0.0.1', GAMEKEEPER_PORT: port = '8080', GAMEKEEPER_TLS_CERT } = process.env
const hostname = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
const request = GAMEKEEPER_TLS_CERT ? requestHttps : requestHttp

// It is asked whether it lives, not who it is: the certificate is for the name by which others reach it.
request({ hostname, port, path: '/healthz', timeout: 4000, rejectUnauthorized: false }, (answer) => {
  answer.resume()
  process.exit(answer.statusCode === 200 ? 0 : 1)
})
  .on('timeout', () => process.exit(1))
  .on('error', () => process.exit(1))
  .end()
