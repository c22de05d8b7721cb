import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseSecret, secretText, signatureHeaders } from '#lib/crypto/standard-webhooks.ts'
import { binaryHeaders } from '#lib/events/cloud-events.ts'
import { isUid } from '#lib/uid.ts'
import { apiReader } from '../framework/api-pages.ts'
import { CliError, exitCodes, usageError } from '../framework/cli-error.ts'
import { type Command, type Options, outputOption, type Terminal } from '../framework/command.ts'
import { groupOf } from '../framework/names.ts'
import { jsonText, plain } from '../framework/plain-text.ts'
import { callerToken, sessionOf, sessionOptions } from '../framework/session.ts'
import { followEvents, type StreamedEvent } from './event-stream.ts'

const forwardTimeoutMs = 10_000

export const eventsListen: Command = {
  details: `Each event is printed once its signature, audience, group and digest were verified; one that is not genuine ends the
command with 1. After a break it goes on where it was. With --forward every event is also posted to a URL, with the headers
and the body that a subscription would get; the secret of its Webhook-Signature is printed first, unless a file has it.
The caller, who must be allowed to list subscriptions, is PINFOLD_TOKEN or whoever has signed in with pinfold auth login.`,
  options: [
    {
      flags: '-g, --group <group>',
      summary: 'Only events of this group and of those below it: ORG, ORG/FOLDER or a uid',
    },
    { flags: '--type <pattern>', summary: 'Only events of this type; * stands for any text', repeat: true },
    { flags: '--after <id>', summary: 'Go on after this event; 0 for the oldest that is kept' },
    { flags: '--forward <url>', summary: 'Post each event to this URL as well' },
    { flags: '--secret-file <file>', summary: 'The secret that forwarded events are signed with (whsec_…)' },
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
    void terminal.untilAsked().then(() => ending.abort())
    const query = queryOf(group, options)
    const token = () => callerToken(terminal, session)
    terminal.say(`listening to ${session.api}; Ctrl-C ends it`)
    for await (const event of followEvents(terminal, { api: session.api, query, token, signal: ending.signal })) {
      await verify(event)
      terminal.print(options.output === 'json' ? jsonOf(event) : lineOf(event))
      await forward?.(event)
    }
    return exitCodes.ok
  },
}

async function groupNamed(terminal: Terminal, options: Options): Promise<string> {
  const given = String(options.group ?? '')
  return given === '' || isUid(given) ? given : groupOf(await apiReader(terminal, options), given)
}

function queryOf(group: string, { type, after }: Options): URLSearchParams {
  const query = new URLSearchParams()
  if (group !== '') query.set('group', group)
  for (const pattern of (type as readonly string[] | undefined) ?? []) query.append('types', pattern)
  if (after !== undefined) query.set('after', String(after))
  return query
}

/** One line for programs: the event as JSON of CloudEvents. */
function jsonOf({ attributes, data }: StreamedEvent): string {
  return jsonText({ ...attributes, datacontenttype: 'application/json', data: JSON.parse(data) as unknown })
}

function lineOf({ attributes, data }: StreamedEvent): string {
  const { actor } = JSON.parse(data) as { actor?: { subject?: unknown } }
  const who = actor?.subject ? `by ${String(actor.subject)}` : 'by nobody'
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
 * Returns the status of the answer, or the reason why there is none. An event is sent once; a receiver that was unavailable can
 * get it again with --after.
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
  if (!secret) throw new CliError(exitCodes.config, `${file} does not hold a secret, which begins with whsec_`)
  return secret
}
