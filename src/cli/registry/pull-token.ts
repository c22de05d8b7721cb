// Commands for pull tokens: long-lived passwords for machines that cannot exchange a token. Each pull token has its own identity
// with a public key; the private key is discarded. The server first sees the token when it is used.
import { randomBytes } from 'node:crypto'
import { jsonText, table, visible } from '#lib/terminal/plain-text.ts'
import { isUid } from '#lib/uid.ts'
import type { Body } from '../framework/api-client.ts'
import { apiCommand, apiReader, callerOptions, inOption, parentOf } from '../framework/api-pages.ts'
import type { ApiReader, Query } from '../framework/api-reader.ts'
import { exitCodes, usageError } from '../framework/cli-error.ts'
import {
  type Command,
  type Commands,
  type OptionSpec,
  type Options,
  outputOption,
  type Terminal,
} from '../framework/command.ts'
import { listCommand } from '../framework/list-command.ts'
import { checkNamed, groupOf, onlyOf } from '../framework/names.ts'
import { shellWord } from '../framework/outputs.ts'
import { registryOf } from '../framework/session.ts'

/** List of all identities with static keys, such as those of pull tokens. */
const identities = { path: '/iam/v2/identities', member: 'identities' }
const staticKeys = { relationship_type: 'RELATIONSHIP_TYPE_STATIC' }

/** Issuer of pull tokens. It distinguishes their identities from other identities with static keys. */
const issuer = 'pinfold-pull-token'
/** Uid of the built-in role `registry.pull`. */
const pullRole = '902b87b2d467e207feddc9515e32fd39b33f05eb'
const defaultTtl = '720h'
const maxTtlHours = 8760

export const createOptions: readonly OptionSpec[] = [
  {
    ...inOption,
    summary: 'Organization or folder to pull from: ORG, ORG/FOLDER or a uid; default: your own organization',
  },
  { flags: '--name <name>', summary: 'Name of the identity that is created; default: pull-token' },
  {
    flags: '--ttl <hours>',
    summary: `Validity in hours, such as 24h; at most ${maxTtlHours}h; default: ${defaultTtl}`,
  },
]

export const tokenOutput: OptionSpec = {
  flags: '-o, --output <format>',
  summary: 'Output format: table, json for programs, or env for a shell; default: table',
  choices: ['table', 'json', 'env'],
}

/** Result of a new pull token. `user` is the user name for docker login, which is the uid of the identity. */
type PullToken = { identity: string; user: string; password: string; expiry: string; registry: string }

const create: Command = {
  details:
    'Creates an identity for the pull token; its uid is the user name. A deleted pull token stops working within a second.',
  options: [
    ...createOptions,
    { flags: '--description <text>', summary: 'Description, such as the machine that uses the token' },
    tokenOutput,
    ...callerOptions,
  ],
  async run(terminal, options) {
    const made = await createPullToken(terminal, options)
    printPassword(terminal, options, made, made)
    return exitCodes.ok
  },
}

const list = listCommand({
  usual: Number.POSITIVE_INFINITY,
  options: [inOption, { flags: '--expired', summary: 'Only expired pull tokens' }, outputOption],
  async run(api, options) {
    const parent = await parentOf(api, options.in)
    const now = new Date().toISOString()
    const query = { 'uidp.children_of': parent, ...staticKeys }
    const { items, more } = await api.selected<Body>(identities.path, identities.member, query, (one) => {
      return tokenOf(one).some(({ expiry }) => !options.expired || expiry <= now)
    })
    const found = items.flatMap(tokenOf)
    const rows = found.map(({ identity, name, expiry, lastSeen }) => [
      identity,
      name,
      `${expiry <= now ? 'expired' : 'expires'} ${expiry}`,
      `used ${lastSeen}`,
    ])
    return { json: { items: found }, rows, more }
  },
})

const remove = apiCommand({
  arguments: [{ name: '<which>', summary: 'Pull token: its name, GROUP/NAME if several have that name, or its uid' }],
  options: [],
  async run(api, options) {
    const given = String(options.which)
    const uid = isUid(given) ? given : await pullTokenNamed(api, given)
    const identity = await api.call('GET', `/iam/v2/identities/${uid}`)
    if (keysOf(identity)?.issuer !== issuer)
      throw usageError(`nothing was deleted: ${uid} is not a pull token; pinfold tokens pull list lists pull tokens`)
    await api.call('DELETE', `/iam/v2/identities/${uid}`)
  },
})

/** Another identity may have the same name. */
async function pullTokenNamed(api: ApiReader, given: string): Promise<string> {
  checkNamed(given, 'pull token')
  const at = given.lastIndexOf('/')
  const scopeQuery = at < 0 ? {} : { 'uidp.children_of': await groupOf(api, given.slice(0, at)) }
  const found = (await pullTokens(api, scopeQuery)).filter(({ name }) => name === given.slice(at + 1))
  const list = 'pinfold tokens pull list'
  return onlyOf(
    found.map(({ identity: uid }) => ({ uid })),
    { words: ['pull token', 'pull tokens'], list },
    given,
  )
}

export const pullToken: Commands = { create, list, delete: remove }

/** Uid of the built-in role `registry.push`, for pushes from this machine. */
export const pushRole = '1d170348733a558be7e883527d0d7e4c60e3ce20'

/** Creates the identity and its binding, and signs the token. The private key is discarded afterwards. */
export async function createPullToken(terminal: Terminal, options: Options, roleUid = pullRole): Promise<PullToken> {
  const api = await apiReader(terminal, options)
  const { session } = api
  const expiry = new Date(Date.now() + hoursOf(options.ttl) * 3_600_000)
  const parent = await parentOf(api, options.in)
  const { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } = await import('jose')
  const registry = registryOf(session)
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = await exportJWK(publicKey)
  const key = { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: 'ES256', use: 'sig' }
  const subject = randomBytes(16).toString('hex')

  const identity = await api.call('POST', `/iam/v2/identities/${parent}`, {
    name: options.name ?? 'pull-token',
    description: options.description ?? '',
    staticKeys: {
      issuer,
      subject,
      issuerKeys: JSON.stringify({ keys: [key] }),
      expirationTime: expiry.toISOString(),
      audiences: [registry],
    },
  })
  const uid = String(identity.uid)
  try {
    await api.call('POST', `/iam/v2/roleBindings/${parent}`, { identityUid: uid, roleUid })
  } catch (error) {
    await api.call('DELETE', `/iam/v2/identities/${uid}`).catch(() => {
      terminal.say(`pinfold: the identity ${uid} was created without its role, and could not be deleted`)
      terminal.say(`pinfold: to delete it: pinfold identities delete ${uid}`)
    })
    throw error
  }
  const password = await new SignJWT()
    .setProtectedHeader({ alg: 'ES256', kid: key.kid, typ: 'JWT' })
    .setIssuer(issuer)
    .setSubject(subject)
    .setAudience(registry)
    .setIssuedAt()
    .setExpirationTime(expiry)
    .sign(privateKey)
  return { identity: uid, user: uid, password, expiry: expiry.toISOString(), registry }
}

function hoursOf(given: unknown): number {
  const hours = Number(/^(\d{1,5})h$/.exec(String(given ?? defaultTtl))?.[1])
  if (hours >= 1 && hours <= maxTtlHours) return hours
  throw usageError(`--ttl must be a number of hours such as 24h, from 1h to ${maxTtlHours}h`)
}

type Listed = { identity: string; user: string; name: string; expiry: string; lastSeen: string }

async function pullTokens({ list }: ApiReader, scopeQuery: Query): Promise<Listed[]> {
  const { items } = await list<Body>(identities.path, identities.member, { ...scopeQuery, ...staticKeys })
  return items.flatMap(tokenOf)
}

/** Pull token of the identity. Empty for an identity that is no pull token. */
function tokenOf(identity: Body): Listed[] {
  const keys = keysOf(identity)
  if (keys?.issuer !== issuer) return []
  const { uid, name, lastSeenTime } = identity
  const expiry = String(keys.expirationTime ?? '')
  return [
    { identity: String(uid), user: String(uid), name: String(name), expiry, lastSeen: String(lastSeenTime ?? '') },
  ]
}

function keysOf(identity: Body): { issuer?: string; expirationTime?: string } | undefined {
  return identity.staticKeys as { issuer?: string; expirationTime?: string } | undefined
}

/**
 * Prints a new password for the registry. The shell lines do not set PINFOLD_TOKEN, which is the token for the API. `json` is the
 * result for programs.
 */
export function printPassword(
  { print }: Terminal,
  { output }: Options,
  { registry, user, password, expiry }: Omit<PullToken, 'identity'>,
  json: object,
): void {
  if (output === 'json') print(jsonText(json, 2))
  else if (output === 'env') {
    print(`export PINFOLD_OCI_IDENTITY_ID=${shellWord(visible(user))}`)
    print(`export PINFOLD_OCI_TOKEN=${shellWord(visible(password))}`)
  } else {
    const rows = Object.entries({ registry, user, expires: expiry })
    for (const line of table(rows)) print(line)
    print(`password  ${password}`)
  }
}
