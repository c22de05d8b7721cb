// API client. All of its paths are below /ui/api, where the session cookie is valid.

let user = ''

/** Sets the uid of the user that requests are sent for. The server refuses them for the session of another user. */
export function actFor(uid: string): void {
  user = uid
}

/** Error response of the API, or a connection that failed. */
export class Refusal extends Error {
  override name = 'Refusal'
  /** HTTP status. 0 if there was no response. */
  readonly status: number
  /** Reason such as `PERMISSION_DENIED`. Empty if the response has no reason. */
  readonly reason: string
  readonly requestId: string
  readonly fields: readonly { field: string; description: string }[]

  constructor(status: number, message: string, details: readonly Detail[] = []) {
    super(message)
    this.status = status
    const info = details.find((one) => one.reason !== undefined)
    this.reason = info?.reason ?? ''
    this.requestId = info?.metadata?.requestId ?? ''
    this.fields = details.flatMap((one) => one.fieldViolations ?? [])
  }
}

/** Group or repository of an address that is missing, or that the user cannot see. */
export class MissingPath extends Refusal {
  override name = 'MissingPath'
  readonly names: readonly string[]

  constructor(names: readonly string[]) {
    super(404, '')
    this.names = names
  }
}

type Detail = {
  reason?: string
  metadata?: { requestId?: string }
  fieldViolations?: { field: string; description: string }[]
}

export type Verb = 'GET' | 'POST' | 'PATCH' | 'DELETE'
export type Query = Readonly<Record<string, string | number | boolean | undefined>>
export type RequestContent = {
  query?: Query | undefined
  body?: object | undefined
  signal?: AbortSignal | undefined
  /** Further headers, such as `if-match`. */
  headers?: Readonly<Record<string, string>> | undefined
}

/** Message of the API in JSON. The API always sets all fields that are not messages themselves. */
export type Full<T> = T extends readonly (infer One)[]
  ? Full<One>[]
  : T extends object
    ? { [Key in keyof T]-?: Full<NonNullable<T[Key]>> }
    : T

/** Sends a request to the API. Throws `Refusal` for an error. If the signal is aborted, throws its reason. */
export async function ask<T>(verb: Verb, path: string, content: RequestContent = {}): Promise<T> {
  const res = await send(verb, path, content)
  const text = await res.text()
  const answer = parsed(text)
  if (!res.ok) throw refusalOf(res.status, text, answer)
  return answer as T
}

/** Reads a response of plain text. */
export async function askText(path: string, { query, signal }: Omit<RequestContent, 'body'> = {}): Promise<string> {
  const res = await send('GET', path, { query, signal, accept: 'text/plain' })
  const text = await res.text()
  if (!res.ok) throw refusalOf(res.status, text, undefined)
  return text
}

/** Opens the response of a streaming method. */
export async function follow(path: string, query: Query, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const res = await send('GET', path, { query, signal, accept: 'text/event-stream' })
  if (res.ok && res.body) return res.body
  const text = await res.text()
  throw refusalOf(res.status, text, parsed(text))
}

async function send(
  verb: Verb,
  path: string,
  { query = {}, body, signal, headers = {}, accept = 'application/json' }: RequestContent & { accept?: string },
): Promise<Response> {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const search = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString()
  try {
    return await fetch(`/ui/api${path}${search && `?${search}`}`, {
      method: verb,
      // With another tab, another user may have signed in since this page was loaded.
      headers: {
        accept,
        ...(user && { 'pinfold-user': user }),
        ...(body && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
      redirect: 'error',
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new Refusal(0, '')
  }
}

function parsed(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text)
  } catch {
    return undefined
  }
}

function refusalOf(status: number, text: string, answer: unknown): Refusal {
  if (!(answer instanceof Object)) return new Refusal(status, text.slice(0, 300))
  const { message = '', details = [] } = answer as { message?: string; details?: Detail[] }
  return new Refusal(status, message, details)
}
