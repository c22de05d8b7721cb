import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseSecret, secretText, signatureHeaders } from '#lib/crypto/standard-webhooks.ts'
import { binaryHeaders } from '#lib/events/cloud-events.ts'
import { jsonText, plain } from '#lib/terminal/plain-text.ts'
import { isUid } from '#lib/uid.ts'
import { apiReader } from '../framework/api-pages.ts'
import { CliError, exitCodes, usageError } from '../framework/cli-error.ts'
import { type Command, type Options, outputOption, type Terminal } from '../framework/command.ts'
import { groupOf } from '../framework/names.ts'
import { callerToken, sessionOf, sessionOptions } from '../framework/session.ts'
import { followEvents, type StreamedEvent } from './event-stream.ts'

const forwardTimeoutMs = 10_000

export const eventsListen: Command = {
  details: `Verifies the signature, audience, group and digest of each event, then prints it. Stops with exit code 1 if an event is not genuine.
After a lost connection, continues with the next event.
With --forward, also posts each event to a URL, with the headers and the body of a webhook delivery. Prints the secret of the
Webhook-Signature first, unless --secret-file has one.
You need permission to list webhooks. Sign in with pinfold login, or set PINFOLD_TOKEN.`,
  options: [
    {
      flags: '--in <group>',
      summary: 'Only events of this organization or folder: ORG, ORG/FOLDER or a uid',
      former: ['-g, --group <group>'],
    },
    {
      flags: '--type <pattern>',
      summary: 'Only events of this type, such as *.registry.push.*; * matches any text; may be repeated',
      repeat: true,
    },
    {
      flags: '--after <id>',
      summary: 'Begin after the event with this id; 0 for the oldest stored event; default: only new events',
    },
    { flags: '--forward <url>', summary: 'Also post each event to this URL' },
    {
      flags: '--secret-file <file>',
      summary: 'File with the secret that signs forwarded events: whsec_…; default: a new secret',
    },
    ...sessionOptions,
    outputOption,
  ],
  async run(terminal, options) {
    const group = await groupNamed(terminal, options)
    const session = sessionOf(terminal, options)
    const forward = forwarderOf(terminal, options)
    const { createEventVerifier } = await import('./verify-event.ts')
    const verify = createEventVerifier(session.api, group)

    const ending = new AbortController()
    void terminal.untilSignaled().then(() => ending.abort())
    const query = queryOf(group, options)
    const token = () => callerToken(terminal, session)
    terminal.say(`listening to ${session.api}; stop with Ctrl-C`)
    for await (const event of followEvents(terminal, { api: session.api, query, token, signal: ending.signal })) {
      await verify(event)
      terminal.print(options.output === 'json' ? jsonOf(event) : lineOf(event))
      await forward?.(event)
    }
    return exitCodes.ok
  },
}

async function groupNamed(terminal: Terminal, options: Options): Promise<string> {
  const given = String(options.in ?? '')
  return given === '' || isUid(given) ? given : groupOf(await apiReader(terminal, options), given)
}

function queryOf(group: string, { type, after }: Options): URLSearchParams {
  const query = new URLSearchParams()
  if (group !== '') query.set('group', group)
  for (const pattern of (type as readonly string[] | undefined) ?? []) query.append('types', pattern)
  if (after !== undefined) query.set('after', String(after))
  return query
}

/** The event as CloudEvents JSON on one line, for programs. */
function jsonOf({ attributes, data }: StreamedEvent): string {
  return jsonText({ ...attributes, datacontenttype: 'application/json', data: JSON.parse(data) as unknown })
}

function lineOf({ attributes, data }: StreamedEvent): string {
  const { actor } = JSON.parse(data) as { actor?: { subject?: unknown } }
  const who = actor?.subject ? `by ${String(actor.subject)}` : 'by an anonymous caller'
  const { time = '', type = '', subject = '' } = attributes
  return [time, type, subject, who].map(plain).join('  ')
}

type Forward = (event: StreamedEvent) => Promise<void>

function forwarderOf(terminal: Terminal, { forward, secretFile }: Options): Forward | undefined {
  if (forward === undefined) return undefined
  const url = URL.parse(String(forward))
  if (!url || !/^https?:$/.test(url.protocol)) throw usageError('--forward must be an http or https URL')
  const secret = secretFile === undefined ? randomBytes(32) : secretOf(String(secretFile))
  if (secretFile === undefined) terminal.say(`forwarded events are signed with ${secretText(secret)}`)
  return async ({ id, attributes, data, token }) => {
    const headers = {
      'Content-Type': 'application/json',
      'User-Agent': 'pinfold',
      Authorization: `Bearer ${token}`,
      ...signatureHeaders([secret], { id, seconds: Math.floor(Date.now() / 1000), body: data }),
      ...binaryHeaders(attributes),
    }
    terminal.say(`${plain(attributes.type ?? '')} ${id} -> ${await post(url, headers, data)}`)
  }
}

/**
 * Sends the event once. Returns the status of the answer, or the reason why there is none. A receiver that was unavailable can
 * get the event again with --after.
 */
async function post(url: URL, headers: Record<string, string>, body: string): Promise<string> {
  try {
    const signal = AbortSignal.timeout(forwardTimeoutMs)
    const res = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
    await res.body?.cancel()
    return String(res.status)
  } catch (error) {
    const { code, message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException
    return plain(code ?? message)
  }
}

function secretOf(file: string): Buffer {
  const secret = parseSecret(readFileSync(file, 'utf8').trim())
  if (!secret)
    throw new CliError(exitCodes.config, `${file} does not contain a webhook secret; a secret begins with whsec_`)
  return secret
}
