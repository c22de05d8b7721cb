// Inputs for two other ways to call methods: the console with its cookie, and MCP.
import { createTools, isTool, toolName } from '#api/mcp/tools.ts'
import { requestOf } from '../../reference/run-calls.ts'
import { jsonBodies } from './bodies.ts'
import type { Input } from './input.ts'
import type { Base } from './largest.ts'
import { endpoints } from './methods.ts'

const tools = createTools(endpoints)
const served = endpoints.filter((endpoint) => endpoint.handler && isTool(endpoint))

/** MCP tools that the server lists. */
export const wayTargets: readonly string[] = (JSON.parse(tools.texts().list) as { name: string }[]).map(
  ({ name }) => `mcp tool ${name}`,
)

/** These requests reach the same handlers as REST, so the short version leaves them out. */
export function otherWays({ endpoint, call, facts, wire }: Base): Input[] {
  const ofConsole = { cookie: facts.cookie, origin: facts.url, 'sec-fetch-site': 'same-origin' }
  const ofAgent = { authorization: `Bearer ${facts.tokens.operator}`, 'content-type': 'application/json' }
  const input = (target: string, shape: string, prepare: Input['prepare']): Input => {
    return { target, caller: 'owner', shape, isRare: true, prepare }
  }
  const { verb, path, body } = requestOf(endpoint.desc, call.request)
  const whole = body === undefined ? '' : JSON.stringify(body)
  const inputs: Input[] = []
  const shapes: [string, () => string][] = [['as it is', () => whole], ...(body ? Object.entries(jsonBodies) : [])]
  for (const [shape, make] of path === '' ? [] : shapes) {
    const prepare = () => {
      const request = { verb, path: `/ui/api${path}`, headers: ofConsole, body: make() }
      return () => wire.http(request)
    }
    inputs.push(input(`ui-api ${endpoint.method.fullName}`, shape, prepare))
  }
  if (!served.includes(endpoint)) return inputs
  const name = toolName(endpoint.desc)
  for (const [shape, make] of [
    ['as it is', () => JSON.stringify(call.request)] as const,
    ...Object.entries(jsonBodies),
  ]) {
    const prepare = () => {
      const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${make()}}}`
      return () => wire.http({ verb: 'POST', path: '/mcp', headers: ofAgent, body: text })
    }
    inputs.push(input(`mcp tool ${name}`, shape, prepare))
  }
  return inputs
}
