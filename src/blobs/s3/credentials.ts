// AWS credentials, from the same sources and variables as the AWS tools, in this order: environment, web identity, file,
// container endpoint, machine endpoint. See https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readAll, send } from './http.ts'
import type { Credentials } from './sign.ts'
import { textOf } from './xml.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export type CredentialSource = {
  /** Returns valid credentials, and renews them before they expire. Rejects if no source has credentials. */
  get(): Promise<Credentials>
  /**
   * Reports that the bucket refused these credentials. `get` then requests new ones, and returns the refused ones only if no
   * others are available.
   */
  forget(refused: Credentials): void
}

/** New credentials are requested this time before the old ones expire. Signed URLs expire with their credentials. */
const renewMs = 15 * 60_000
/** Delay after a failed renewal while the old credentials are still valid. */
const againMs = 30_000
/** If the old credentials are valid for longer than this time, callers do not wait for the renewal. */
const soonMs = 60_000
/** Files with credentials may be replaced at any time, so they are read again after this time. */
const fileMs = 60_000
const timeoutMs = 5000
const answerBytes = 64 * 1024

export function createCredentials(
  env: Environment,
  region: string,
  now: () => number = () => Date.now(),
): CredentialSource {
  let kept: { credentials: Credentials; until: number; isRefused?: boolean } | undefined
  let asking: Promise<Credentials> | undefined

  const ask = async (): Promise<Credentials> => {
    try {
      const { fresh, lastsMs } = await findCredentials(env, region)
      const until = fresh.expires === undefined ? now() + lastsMs : renewalOf(fresh.expires, now())
      kept = { credentials: fresh, until }
      return fresh
    } catch (error) {
      const expires = kept?.credentials.expires ?? Number.POSITIVE_INFINITY
      if (!kept || expires <= now()) throw error
      // The renewal failed, so the old credentials are used for a while, even if they were refused. Callers do not wait
      // meanwhile.
      kept = { credentials: kept.credentials, until: Math.min(now() + againMs, expires) }
      return kept.credentials
    }
  }
  return {
    async get() {
      if (kept && now() < kept.until) return kept.credentials
      asking ??= ask().finally(() => {
        asking = undefined
      })
      const { credentials, isRefused } = kept ?? {}
      if (isRefused || !credentials?.expires || now() >= credentials.expires - soonMs) return asking
      // The old credentials are still valid, so this caller does not wait. If the renewal fails, only waiting callers get the
      // error.
      asking.catch(() => {})
      return credentials
    },
    forget(refused) {
      if (kept?.credentials === refused) kept = { ...kept, until: 0, isRefused: true }
    },
  }
}

/** Time of the renewal. Credentials with a short life are renewed after half of it. */
const renewalOf = (expires: number, now: number): number => expires - Math.min(renewMs, (expires - now) / 2)

async function findCredentials(env: Environment, region: string): Promise<{ fresh: Credentials; lastsMs: number }> {
  const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: token } = env
  if (id && secret) {
    const fresh = { accessKeyId: id, secretAccessKey: secret, sessionToken: token || undefined }
    return { fresh, lastsMs: Number.POSITIVE_INFINITY }
  }
  if (env.AWS_WEB_IDENTITY_TOKEN_FILE && env.AWS_ROLE_ARN) return withLifetime(await fromWebIdentity(env, region))
  const inFile = await fromFile(env)
  if (inFile) return { fresh: inFile, lastsMs: fileMs }
  if (env.AWS_CONTAINER_CREDENTIALS_FULL_URI || env.AWS_CONTAINER_CREDENTIALS_RELATIVE_URI) {
    return withLifetime(await fromContainer(env))
  }
  if (env.AWS_EC2_METADATA_DISABLED?.toLowerCase() === 'true')
    throw new Error('there are no credentials for the bucket')
  return withLifetime(
    await fromMachine(env).catch((cause: unknown) => {
      throw new Error('there are no credentials for the bucket in the environment, in a file or at an endpoint', {
        cause,
      })
    }),
  )
}

const withLifetime = (fresh: Credentials) => ({ fresh, lastsMs: fileMs })

async function fromWebIdentity(env: Environment, region: string): Promise<Credentials> {
  const token = (await readFile(env.AWS_WEB_IDENTITY_TOKEN_FILE!, 'utf8')).trim()
  const base = env.AWS_ENDPOINT_URL_STS || `https://sts.${region}.amazonaws.com`
  const form = new URLSearchParams({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: env.AWS_ROLE_ARN!,
    RoleSessionName: env.AWS_ROLE_SESSION_NAME || 'pinfold',
    WebIdentityToken: token,
  })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const text = await call(new URL('/', base).href, 'POST', headers, form.toString())
  const inside = textOf(text, 'Credentials') ?? ''
  return readCredentials(
    Object.fromEntries(
      ['AccessKeyId', 'SecretAccessKey', 'SessionToken', 'Expiration'].map((name) => [name, textOf(inside, name)]),
    ),
    'the token service',
  )
}

/** Reads the shared credentials file of the AWS tools, which has sections of `name = value`. */
async function fromFile(env: Environment): Promise<Credentials | undefined> {
  const named = env.AWS_SHARED_CREDENTIALS_FILE
  if (!named && !env.HOME) return undefined
  const file = named || join(env.HOME!, '.aws', 'credentials')
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (!named && ['ENOENT', 'EACCES', 'ENOTDIR'].includes(error.code ?? '')) return ''
    throw error
  })
  const profile = env.AWS_PROFILE || 'default'
  const values: Record<string, string> = {}
  let section = ''
  for (const line of text.split(/\r?\n/)) {
    const heading = /^\s*\[([^\]]+)\]/.exec(line)?.[1]
    if (heading !== undefined) section = heading.trim().replace(/^profile\s+/, '')
    const [, name, value] = /^\s*(aws_\w+)\s*=\s*(\S+)/.exec(line) ?? []
    if (section === profile && name) values[name] = value!
  }
  const { aws_access_key_id: accessKeyId, aws_secret_access_key: secretAccessKey, aws_session_token } = values
  if (accessKeyId && secretAccessKey) return { accessKeyId, secretAccessKey, sessionToken: aws_session_token }
  if (named || env.AWS_PROFILE) throw new Error(`${file} has no credentials for the profile ${profile}`)
  return undefined
}

/** Hosts of container endpoints that may use http. */
const containerHosts = ['169.254.170.2', '169.254.170.23', '[fd00:ec2::23]', 'localhost', '127.0.0.1', '[::1]']

async function fromContainer(env: Environment): Promise<Credentials> {
  const relative = env.AWS_CONTAINER_CREDENTIALS_RELATIVE_URI
  const url = new URL(relative ? `http://169.254.170.2${relative}` : env.AWS_CONTAINER_CREDENTIALS_FULL_URI!)
  if (url.protocol !== 'https:' && !containerHosts.includes(url.hostname)) {
    throw new Error('AWS_CONTAINER_CREDENTIALS_FULL_URI must be an https URL or a URL of this machine')
  }
  const file = env.AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE
  const token = file ? (await readFile(file, 'utf8')).trim() : env.AWS_CONTAINER_AUTHORIZATION_TOKEN
  return readCredentials(
    await callJson(url.href, 'GET', token ? { authorization: token } : {}),
    'the endpoint of the container',
  )
}

async function fromMachine(env: Environment): Promise<Credentials> {
  const base = new URL('/latest/', env.AWS_EC2_METADATA_SERVICE_ENDPOINT || 'http://169.254.169.254').href
  const token = await call(`${base}api/token`, 'PUT', { 'x-aws-ec2-metadata-token-ttl-seconds': '300' })
  const headers = { 'x-aws-ec2-metadata-token': token }
  const roles = `${base}meta-data/iam/security-credentials/`
  const role = (await call(roles, 'GET', headers)).trim().split('\n')[0]!
  return readCredentials(
    await callJson(roles + encodeURIComponent(role), 'GET', headers),
    'the endpoint of the machine',
  )
}

function readCredentials(given: Record<string, unknown>, who: string): Credentials {
  const { AccessKeyId, SecretAccessKey, Token, SessionToken = Token, Expiration } = given
  const expires = Date.parse(String(Expiration))
  if (typeof AccessKeyId !== 'string' || typeof SecretAccessKey !== 'string' || AccessKeyId === '') {
    throw new Error(`${who} has no credentials`)
  }
  return {
    accessKeyId: AccessKeyId,
    secretAccessKey: SecretAccessKey,
    sessionToken: typeof SessionToken === 'string' ? SessionToken : undefined,
    expires: Number.isNaN(expires) ? undefined : expires,
  }
}

async function callJson(
  url: string,
  method: string,
  headers: Record<string, string>,
): Promise<Record<string, unknown>> {
  const given: unknown = JSON.parse(await call(url, method, headers))
  if (typeof given !== 'object' || given === null) throw new Error(`${new URL(url).host} has no credentials`)
  return given as Record<string, unknown>
}

/** Sends a request for credentials. Error messages never contain the response, since it may contain a secret. */
async function call(url: string, method: string, headers: Record<string, string>, body = ''): Promise<string> {
  const bytes = Buffer.from(body)
  const length = { 'content-length': String(bytes.length) }
  const res = await send({ url, method, headers: { ...headers, ...length }, body: [bytes], timeoutMs })
  const text = (await readAll(res, answerBytes)).toString()
  if (res.statusCode === 200) return text
  throw new Error(`${new URL(url).host} returned no credentials (status ${res.statusCode})`)
}
