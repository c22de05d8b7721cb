import type { ServerResponse } from 'node:http'

/** Answers with a text, unless there is an answer already. */
export function sendText(res: ServerResponse, status: number, type: string, text: string | Buffer): void {
  if (res.headersSent) return
  res.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) })
  res.end(text)
}
