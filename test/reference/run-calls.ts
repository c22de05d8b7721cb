// Makes the calls of the reference against a real server, over REST as the contract binds them, and writes down the answers.
// Random values, such as uids and times, become the same in every run.
import { createHash } from 'node:crypto'
import { create, type DescMessage, type DescMethod } from '@bufbuild/protobuf'
import { buildEndpoints, type Endpoint } from '#api/methods.ts'
import { services } from '#api/services.ts'
import { jsonText } from '#api/transcoding/json-write.ts'
import { fieldNamed } from '#api/transcoding/message-fields.ts'
import { readWhole } from '#api/transcoding/transcode.ts'
import { builtInRoles } from '#domains/iam/access/built-in-roles.ts'
import { snakeCase } from '#lib/fields.ts'
import { httpOf } from '../../scripts/openapi-annotations.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Answer, clientOf, type Json } from '../support/pinfold.ts'
import { absent, type Call, changes, deletions, reads } from './calls.ts'
import { startWorld, type World } from './world.ts'

/** A call and its answer. `path` is empty for a method that only gRPC has. */
export type Example = { verb: string; path: string; body?: Json; status: number; response: Json }
export type Examples = Record<string, Example>

const endpoints = new Map(buildEndpoints(services).map((endpoint) => [shortName(endpoint.method.fullName), endpoint]))

/** `iam.v2.GroupsService/GetGroup` of `pinfold.platform.iam.v2.GroupsService/GetGroup`. */
export function shortName(fullName: string): string {
  return fullName.replace(/^pinfold\.(?:platform\.)?/, '')
}

/** The methods that this server serves, by their short names. */
export function servedMethods(): string[] {
  return [...endpoints].filter(([, { handler }]) => handler).map(([name]) => name)
}

/** One call over REST on its way; `send` makes it, with these headers besides. */
export type Sending = {
  name: string
  endpoint: Endpoint
  world: World
  request: Json
  token: string | undefined
  send(headers?: Record<string, string>): Promise<Answer>
}

/** Makes the calls in their order, each as `make` does it. */
export async function makeCalls(make: (sending: Sending) => Promise<Answer>): Promise<void> {
  await using world = await startWorld()
  for (const call of [...changes, ...deletions]) await run(world, call, {}, make)
}

/** The request of a method over REST. */
export function requestOf(desc: DescMethod, request: Json): { verb: string; path: string; body?: Json } {
  return restOf(desc, request)
}

/** Every example by the full name of its method, in the order of the calls. */
export async function runCalls(): Promise<Examples> {
  await using world = await startWorld()
  const made: Examples = {}
  for (const call of [...changes, ...reads, ...deletions]) await run(world, call, made)
  return JSON.parse(stable(JSON.stringify(made), world)) as Examples
}

/** The reading calls of some methods as they are made, with a server on which they find something. */
export async function withReads(
  isWanted: (method: string) => boolean,
  use: (world: World, asked: { name: string; args: Json }[]) => Promise<void>,
): Promise<void> {
  await using world = await startWorld()
  for (const call of changes) await run(world, call, {})
  const asked: { name: string; args: Json }[] = []
  for (const [method, request] of reads) {
    if (!isWanted(method)) continue
    asked.push({ name: method, args: (await filled(world, request)) as Json })
  }
  await use(world, asked)
}

/** Makes one call of the list, with what the calls before it have made. */
export async function run(
  world: World,
  [method, template, name, caller]: Call,
  made: Examples,
  make: (sending: Sending) => Promise<Answer> = ({ send }) => send(),
): Promise<void> {
  const endpoint = endpoints.get(method)
  if (!endpoint?.handler) return
  const request = (await filled(world, template)) as Json
  const token = await world.tokenOf(caller ?? 'operator')
  const rest = restOf(endpoint.desc, request)
  const sending = async (): Promise<Came> => {
    if (isStream(rest)) return firstOfStream(world, rest.path, token)
    const client = clientOf(`http://127.0.0.1:${world.pinfold.port}`, token)
    const send: Sending['send'] = (headers) => client.call(rest.verb, rest.path, rest.body, headers)
    const answer = await make({ name: method, endpoint, world, request, token, send })
    return { status: answer.status, response: answer.body }
  }
  const { status, response } = rest.path === '' ? await overGrpc(world, endpoint.desc, request, token) : await sending()
  if (status !== (absent.includes(method) ? 404 : 200))
    throw new Error(`${method} ${JSON.stringify(rest)} answered ${status}: ${JSON.stringify(response)}`)
  if (name !== undefined) world.saved[name] = response
  await world.done(method, response)
  made[endpoint.method.fullName] = { ...rest, status, response: shortened(response) as Json }
}

/** Replaces `$name` by what it stands for, anywhere in the request. */
export async function filled(world: World, value: unknown): Promise<unknown> {
  if (typeof value === 'string') return value.startsWith('$') ? world.find(value.slice(1)) : value
  if (Array.isArray(value)) return Promise.all(value.map((one) => filled(world, one)))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(async ([key, member]) => [key, await filled(world, member)] as const)
  return Object.fromEntries(await Promise.all(members))
}

/** The request of HTTP: path variables, the body, and the rest in the query. */
function restOf(desc: DescMethod, request: Json): { verb: string; path: string; body?: Json } {
  const [binding] = httpOf(desc)
  if (!binding) return { verb: '', path: '', body: request }
  const left = structuredClone(request)
  const path = binding.path.replace(/\{([^=}]+)(=[^}]*)?\}/g, (_, field: string, pattern = '') => {
    const names = field.split('.').map((name) => memberOf(desc.input, name))
    const owner = names.slice(0, -1).reduce<Json>((at, name) => at[name], left)
    const value = String(owner[names.at(-1)!] ?? '')
    delete owner[names.at(-1)!]
    return pattern === '=**' ? value : encodeURIComponent(value)
  })
  const verb = binding.httpMethod.toUpperCase()
  if (binding.body === '*') return { verb, path, body: left }
  const member = binding.body && memberOf(desc.input, binding.body)
  const body = member ? ((left[member] ?? {}) as Json) : undefined
  if (member) delete left[member]
  const search = queryOf(desc.input, left).join('&')
  return { verb, path: search ? `${path}?${search}` : path, ...(body ? { body } : {}) }
}

/** Members are spelled as JSON has them, whichever way the contract does. */
function memberOf(input: DescMessage, name: string): string {
  return fieldNamed(input, name)?.jsonName ?? name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function queryOf(desc: DescMessage, values: Json, prefix = ''): string[] {
  return Object.entries(values).flatMap(([key, value]): string[] => {
    const name = `${prefix}${snakeCase(key)}`
    const one = (item: unknown) =>
      `${name}=${encodeURIComponent(textOf(item)).replaceAll('%2F', '/').replaceAll('%3A', ':')}`
    if (Array.isArray(value)) return value.map(one)
    return typeof value === 'object' ? queryOf(desc, value as Json, `${name}.`) : [one(value)]
  })
}

/** A message in a list is written as `<repo>:<tag>`. */
function textOf(item: unknown): string {
  if (typeof item !== 'object' || item === null) return String(item)
  const [head, tags = []] = Object.values(item) as [string, string[]?]
  return tags.length > 0 ? `${head}:${tags.join(',')}` : head
}

type Came = { status: number; response: Json }

const isStream = ({ verb, path }: { verb: string; path: string }): boolean =>
  verb === 'GET' && path.startsWith('/events/v2/stream')

async function firstOfStream(world: World, path: string, token: string | undefined): Promise<Came> {
  const headers = { authorization: `Bearer ${token}` }
  const res = await fetch(`http://127.0.0.1:${world.pinfold.port}${path}`, { headers })
  const reader = res.body!.getReader()
  let text = ''
  for (;;) {
    text += Buffer.from((await reader.read()).value!).toString()
    const data = /^data: ?(.*)\n/m.exec(text)?.[1]
    if (data === undefined) continue
    await reader.cancel()
    return { status: res.status, response: JSON.parse(data) as Json }
  }
}

async function overGrpc(world: World, desc: DescMethod, request: Json, token: string | undefined): Promise<Came> {
  const service = services.find((one) => one.desc.typeName === desc.parent.typeName)!
  using client = grpcClientOf(world.pinfold, service.desc, token) as Json & Disposable
  const message = create(desc.input, readWhole(desc.input, request).request as never)
  const response = await client[desc.localName](message)
  return { status: 200, response: JSON.parse(jsonText(desc.output, response)) as Json }
}

const longestText = 240

/** Lists show two elements, and long texts their beginning. */
function shortened(value: unknown): unknown {
  if (typeof value === 'string') return value.length > longestText ? `${value.slice(0, 40)}…` : value
  if (Array.isArray(value)) return value.slice(0, 2).map(shortened)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shortened(member)]))
}

const kept = new Set(builtInRoles.map(({ uid }) => uid))

/** The text with stand-ins for whatever differs from run to run. */
function stable(text: string, world: World): string {
  const standIn = (kind: string, length: number) => {
    const seen = new Map<string, string>()
    return (found: string) => {
      if (kept.has(found)) return found
      const known =
        seen.get(found) ?? createHash('sha256').update(`${kind} ${seen.size}`).digest('hex').slice(0, length)
      seen.set(found, known)
      return known
    }
  }
  const uuid = standIn('uuid', 32)
  let ticks = 0
  const times = new Map<string, string>()
  const start = Date.parse('2026-03-01T12:00:00.000Z')
  const timeOf = (found: string) => {
    if (found < '2026-03') return found
    if (!times.has(found)) times.set(found, new Date(start + 1000 * ticks++).toISOString())
    return times.get(found)!
  }
  const { url } = world.pinfold
  return text
    .replaceAll(new URL(url).host, 'registry.example.com')
    .replaceAll('http://registry.example.com', 'https://registry.example.com')
    .replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, 'https://issuer.example.com')
    .replaceAll(/127\.0\.0\.1(?::\d+)?/g, '203.0.113.7')
    .replaceAll(/\bpt-[2-9b-z]{8}\b/g, 'pt-7k3mq9xw')
    .replaceAll(/(?<=\/ui\/invite#)[\w-]{43}/g, 'key')
    .replaceAll(/(?<=pinfold-verification=)[0-9a-f]{32}/g, '0f1e2d3c4b5a69788796a5b4c3d2e1f0')
    .replaceAll(/eyJ[\w-]{8,}\.[\w-]+\.[\w-]+/g, 'eyJhbGciOiJFUzI1NiIs…')
    .replaceAll(/(?<![0-9a-f:])[0-9a-f]{40}(?![0-9a-f])/g, standIn('root', 40))
    .replaceAll(/(?<=\/)[0-9a-f]{16}(?![0-9a-f])/g, standIn('node', 16))
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, (found) => {
      return uuid(found).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
    })
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, timeOf)
    .replaceAll(
      /(?<="(?:nextPageToken|code|token|secret|key|keyId)":")[^"]{24,}(?=")/g,
      (found) => `${found.slice(0, 6)}…`,
    )
}
