// Calls the tools of a server with the official clients of the Model Context Protocol: an older one with a handshake, and a newer
// one without. The environment variables are `URL`, `TOKEN`, and `CALLS`, a file with the calls. Both clients check answers
// against the schemas.
import { readFileSync } from 'node:fs'
import * as modern from '@modelcontextprotocol/client'
import { Client as OlderClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OlderTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

type Call = { name: string; arguments: Record<string, unknown> }
type Result = { isError?: boolean; structuredContent?: unknown; content: { text: string }[] }
type Tool = { name: string; annotations?: { readOnlyHint?: boolean } }
type AnyClient = {
  connect(transport: unknown): Promise<void>
  getServerVersion(): { name: string } | undefined
  listTools(): Promise<{ tools: Tool[] }>
  callTool(call: Call): Promise<Result>
  close(): Promise<void>
}

const { URL: url = '', TOKEN: token = '', CALLS: file = '' } = process.env
const calls = JSON.parse(readFileSync(file, 'utf8')) as Call[]
const target = new URL('/mcp', url)
const about = { name: 'pinfold-test', version: '1.0.0' }
const options = (bearer: string) => ({ requestInit: { headers: { authorization: `Bearer ${bearer}` } } })

function must(name: string, isRight: boolean, seen: unknown): void {
  if (!isRight) throw new Error(`${name}: ${JSON.stringify(seen)}`)
  console.log(`ok ${name}`)
}

async function refused(name: string, work: Promise<unknown>): Promise<void> {
  const seen = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  must(name, seen instanceof Error, seen)
}

async function tryClient(kind: string, client: AnyClient, transport: unknown): Promise<void> {
  await client.connect(transport)
  must(`${kind} connects`, client.getServerVersion()?.name === 'pinfold', client.getServerVersion())
  const { tools } = await client.listTools()
  const reading = tools.filter(({ annotations }) => annotations?.readOnlyHint)
  const missing = reading.filter(({ name }) => !calls.some((call) => call.name === name))
  must(`${kind} lists ${tools.length} tools, and has a call of each that reads`, missing.length === 0, missing)
  for (const call of calls) {
    const result = await client.callTool(call)
    const same = JSON.stringify(JSON.parse(result.content[0]!.text)) === JSON.stringify(result.structuredContent)
    must(`${kind} calls ${call.name}`, !result.isError && same, result)
  }
  const wrong = await client.callTool({ name: 'get_group', arguments: { uid: 'nothing' } })
  must(
    `${kind} is told which argument is wrong`,
    wrong.isError === true && /"field":"uid"/.test(wrong.content[0]!.text),
    wrong,
  )
  await refused(`${kind} cannot call what is no tool`, client.callTool({ name: 'nothing', arguments: {} }))
  await client.close()
}

const older = new OlderClient(about) as unknown as AnyClient
await tryClient('the older client', older, new OlderTransport(target, options(token)))
const pinned = { versionNegotiation: { mode: { pin: '2026-07-28' } } }
const newer = new modern.Client(about, pinned as never) as unknown as AnyClient
await tryClient('the newer client', newer, new modern.StreamableHTTPClientTransport(target, options(token)))
const choosing = new modern.Client(about, { versionNegotiation: { mode: 'auto' } } as never) as unknown as AnyClient
await tryClient('a client that asks first', choosing, new modern.StreamableHTTPClientTransport(target, options(token)))
const stranger = new OlderClient(about)
await refused(
  'without a good token nobody connects',
  stranger.connect(new OlderTransport(target, options('x')) as never),
)
