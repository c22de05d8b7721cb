// Calls POST /mcp as a client of the Model Context Protocol does.
import assert from 'node:assert/strict'
import type { Answer, Client, Json } from './pinfold.ts'

export const modern = '2026-07-28'
const prefix = 'io.modelcontextprotocol'

export type Ask = { method: string; params?: Json; version?: string; headers?: Record<string, string> }

/** Protocol version and capabilities of the client, in each message of the newest revision. */
export const meta = { [`${prefix}/protocolVersion`]: modern, [`${prefix}/clientCapabilities`]: {} }

/**
 * Sends one request in the form of the protocol revision `version`. For an older revision, it belongs to a client that has sent
 * `initialize`.
 */
export function rpc(
  client: Client,
  { method, params = {}, version = '2025-11-25', headers = {} }: Ask,
): Promise<Answer> {
  const isModern = version === modern
  const said: Record<string, string> = { 'mcp-protocol-version': version }
  if (isModern) said['mcp-method'] = method
  if (isModern && method === 'tools/call') said['mcp-name'] = params.name
  const message = { jsonrpc: '2.0', id: 1, method, params: isModern ? { ...params, _meta: meta } : params }
  return client.call('POST', '/mcp', message, { ...said, ...headers })
}

/** Calls a tool and returns its result. */
export async function callTool(client: Client, name: string, args: Json = {}, version?: string): Promise<Json> {
  const ask: Ask = { method: 'tools/call', params: { name, arguments: args } }
  const answer = await rpc(client, version === undefined ? ask : { ...ask, version })
  assert.equal(answer.status, 200, answer.text)
  assert.ok(answer.body.result, answer.text)
  return answer.body.result as Json
}

/** Calls a tool that must succeed and returns its result. */
export async function tool(client: Client, name: string, args: Json = {}): Promise<Json> {
  const { isError, structuredContent, content } = await callTool(client, name, args)
  assert.equal(isError, false, JSON.stringify(content))
  assert.deepEqual(JSON.parse(content[0].text), structuredContent)
  return structuredContent as Json
}

/** Calls a tool that must fail and returns its error, which has the form of a REST error. */
export async function toolError(client: Client, name: string, args: Json = {}): Promise<Json> {
  const { isError, structuredContent, content } = await callTool(client, name, args)
  assert.equal(isError, true, JSON.stringify(content))
  assert.equal(structuredContent, undefined)
  return JSON.parse(content[0].text) as Json
}
