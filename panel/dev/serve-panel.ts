// The built panel in front of a service, with the headers that it has to work under. For tests and screenshots.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'
import { build } from 'vite'
import { createSessionShim } from './session-shim.ts'

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

export async function buildPanel(outDir: string): Promise<void> {
  const configFile = join(import.meta.dirname, '../vite.config.ts')
  await build({ configFile, logLevel: 'error', build: { outDir, emptyOutDir: true } })
}

export async function servePanel(distDir: string, serviceUrl: string) {
  const shim = createSessionShim(serviceUrl, null)
  const server = createServer(async (request, response) => {
    if (shim(request, response)) return
    const path = normalize(new URL(request.url ?? '/', 'http://panel').pathname)
    const found = await readFile(join(distDir, path === '/' ? 'index.html' : path)).catch(() => null)
    const body = found ?? (await readFile(join(distDir, 'index.html')))
    const type = TYPES[found && path !== '/' ? extname(path) : '.html'] ?? 'application/octet-stream'
    response.writeHead(200, { 'content-type': type, 'content-security-policy': CONTENT_SECURITY_POLICY }).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
