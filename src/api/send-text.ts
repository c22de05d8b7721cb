import type { ServerResponse } from 'node:http'

/** Sends a text response, unless there is a response already. */
export function sendText(res: ServerResponse, status: number, type: string, text: string | Buffer): void {
  if (res.headersSent) return
  res.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) })
  res.end(text)
}
