// Asks a server the questions of a release, and puts the answers into a form that can be compared and read.
import { setTimeout as sleep } from 'node:timers/promises'
import { decodeJwt } from 'jose'
import { openStream } from '../support/event-stream.ts'
import { type Answer, clientOf, type Json } from '../support/pinfold.ts'
import { digestOf, type Reply, registryClient } from '../support/registry.ts'
import type { People } from './scene.ts'

/**
 * Each question is `CALLER METHOD PATH`; under `rights` it is `METHOD PATH`, asked by everybody. The sections are in the
 * order in which they are asked: resources come before anybody has shown a token, which changes when they were last seen.
 */
export type Questions = {
  /** The whole answer. */
  resources: string[]
  /** The totals and, through all pages, which items in which order. */
  lists: string[]
  /** The whole answer, of methods with what has happened. */
  history: string[]
  /** The stream of events from its beginning; without a group only what each event is, and the digest of what it says. */
  events: string[]
  /** Requests to the registry: status, headers, and JSON or the digest of the content. */
  registry: string[]
  /** Allowed callers of each method: only the status. */
  rights: string[]
  /** `/token` and `/auth/v1/ok`, and what is in the tokens. */
  tokens: string[]
}
export type Section = keyof Questions
export type Answers = Partial<Record<Section, Record<string, unknown>>>

/** A server that answers, and how to be somebody there. */
export type Asked = {
  /** Address that it listens on, which may differ from its URL. */
  origin: string
  /** A token of the server for an identity, for the API or for the registry. */
  token(uid: string, registry: boolean): Promise<string>
  operator: string
  people: Pick<People, 'callers' | 'pullToken'>
}

/** Headers of the registry that clients rely on. */
const headers = [
  'content-type',
  'content-length',
  'docker-content-digest',
  'oci-filters-applied',
  'link',
  'location',
  'range',
  'www-authenticate',
]

/** `known` are answers to the same questions, of which only the number of events is looked at. */
export async function askAll(asked: Asked, questions: Questions, known: Answers = {}): Promise<Answers> {
  const answers: Answers = {}
  for (const [section, some] of Object.entries(questions) as [Section, string[]][]) {
    answers[section] = {}
    for (const question of some) {
      const before = known[section]?.[question]
      answers[section][question] = await ask(
        asked,
        section,
        question,
        Array.isArray(before) ? before.length : undefined,
      )
    }
  }
  return answers
}

async function ask(asked: Asked, section: Section, question: string, events: number | undefined): Promise<unknown> {
  if (section === 'rights') return rightsAt(asked, question)
  const [, caller, method, path] = /^(.+) (GET|HEAD) (\S+)$/.exec(question)!
  if (path!.startsWith('/v2/')) return shownBy(await fromRegistry(asked, caller!, method!, path!))
  if (path!.startsWith('/token')) return tokenFrom(asked, caller!, path!)
  const token = await tokenOf(asked, caller!, false)
  if (section === 'events') return eventsFrom(asked, token, path!, events)
  if (section === 'lists') return pagesOf((at) => clientOf(asked.origin, token).get(at), path!)
  return bodyOf(await clientOf(asked.origin, token).get(path!))
}

async function tokenOf({ token, operator, people }: Asked, caller: string, registry: boolean) {
  if (caller === 'anonymous') return undefined
  return token(caller === 'operator' ? operator : people.callers[caller]!, registry)
}

/** A refusal is its status and reason: the message may be put better, and names the request. */
function bodyOf({ status, body }: Answer): unknown {
  if (status !== 200) return { status, reason: body.details?.[0]?.reason ?? body.errors?.[0]?.code }
  // A page token is another one each time; what it leads to shows in the lists.
  return 'nextPageToken' in body ? { ...body, nextPageToken: body.nextPageToken !== '' } : body
}

/** Items as the name and the end of the uid, which is as much as one needs to tell them apart. */
async function pagesOf(get: (path: string) => Promise<Answer>, path: string): Promise<unknown> {
  const items: string[] = []
  let pages = 0
  for (let token = ''; ; ) {
    const answer = await get(`${path}${path.includes('?') ? '&' : '?'}page_token=${token}`)
    if (answer.status !== 200) return bodyOf(answer)
    const { totalCount, nextPageToken, ...rest } = answer.body
    items.push(...(Object.values(rest)[0] as Json[]).map(shortOf))
    pages++
    token = nextPageToken
    if (!token) return { totalCount, pages, items }
  }
}

function shortOf({ uid, name = '', type = '', subject = '', createTime = '' }: Json): string {
  const words = type === '' ? [name] : [createTime, type.replace(/^dev\.pinfold\.api\./, ''), subject.slice(-6)]
  return [...words, uid.slice(-6)].filter(Boolean).join(' ')
}

async function fromRegistry(asked: Asked, caller: string, method: string, path: string): Promise<Reply> {
  return registryClient(asked.origin, await tokenOf(asked, caller, true)).call(method, path)
}

function shownBy({ status, headers: all, bytes, body }: Reply): unknown {
  const shown = Object.fromEntries(headers.flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]]])))
  if (status >= 400) return { status, reason: body.errors?.[0]?.code }
  if (bytes.length === 0) return { status, headers: shown }
  return {
    status,
    headers: shown,
    ...(status === 200 && 'docker-content-digest' in shown ? { content: digestOf(bytes) } : { body }),
  }
}

/** Rights of a token. The token itself is another one each time. */
async function tokenFrom(asked: Asked, caller: string, path: string): Promise<unknown> {
  const { user, password } =
    caller === 'pull token' ? asked.people.pullToken : { user: '_token', password: await tokenOf(asked, caller, true) }
  const basic = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  const client = clientOf(asked.origin, undefined)
  const answer = await client.call('GET', path, undefined, caller === 'anonymous' ? {} : { authorization: basic })
  if (answer.status !== 200) return bodyOf(answer)
  const { iss, sub, aud, access } = decodeJwt<{ access: unknown }>(answer.body.token)
  return { iss, sub, aud, access, expiresIn: answer.body.expires_in }
}

/** The status that each caller gets. */
async function rightsAt(asked: Asked, question: string): Promise<Record<string, number>> {
  const [method, path] = question.split(' ') as [string, string]
  const callers = ['operator', ...Object.keys(asked.people.callers), 'anonymous']
  const statuses = callers.map(async (caller): Promise<[string, number]> => {
    const client = clientOf(asked.origin, await tokenOf(asked, caller, path.startsWith('/v2/')))
    const body = method === 'POST' || method === 'PATCH' ? {} : undefined
    return [caller, (await client.call(method, path, body)).status]
  })
  return Object.fromEntries(await Promise.all(statuses))
}

/** The stream does not end by itself: it is read until as many events have come as are known, or no more come. */
async function eventsFrom(asked: Asked, token: string | undefined, path: string, known = Number.POSITIVE_INFINITY) {
  using stream = await openStream(asked.origin, token, { query: path.split('?')[1]! })
  if (stream.status !== 200) return { status: stream.status, ...stream.error }
  const patience = known === Number.POSITIVE_INFINITY ? 2000 : 20_000
  for (let seen = -1; seen < stream.events.length && stream.events.length < known; ) {
    seen = stream.events.length
    const more = stream.until(() => stream.events.length >= Math.min(known, seen + 50))
    await Promise.race([more, sleep(patience, undefined, { ref: false })])
  }
  // All events are long; those of one group are shown as they are.
  if (path.includes('group=')) {
    return stream.events.map(({ id, attributes, data }) => ({ id, attributes, data: JSON.parse(data) }))
  }
  return stream.events.map(({ id, attributes, data }) => `${id} ${attributes.type} ${digestOf(data).slice(0, 23)}`)
}
