// The states that every screen has: loading, refused, empty, and partly known.
import type { ComponentChildren } from 'preact'
import { here } from '../app/route.ts'
import { Refusal } from '../data/api.ts'
import type { Paged } from '../data/list.ts'
import { words } from '../words.ts'
import type { Loaded } from './load.ts'

/** Shows what was loaded, or why there is nothing yet. */
export function Shown<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }) {
  if (of.error !== undefined) return <Problem error={of.error} retry={of.reload} />
  if (of.data === undefined) return <Waiting />
  return <div aria-busy={of.isBusy}>{children(of.data)}</div>
}

export function Waiting() {
  return (
    <div class="waiting" role="status">
      <span class="unseen">{words.loading}</span>
      <i />
      <i />
      <i />
    </div>
  )
}

/** Error message, and the next step. */
export function Problem({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) {
  const { title, text, requestId, isSignedOut, isStale } = explain(error)
  const { pathname, search } = here()
  const back = `/ui/signin?${new URLSearchParams({ return: pathname + search, ...(isStale && { fresh: 'true' }) })}`
  return (
    <div class="notice bad" role="alert">
      <p>
        <strong>{title}</strong>
      </p>
      {text !== '' && (
        <p>
          <bdi>{text}</bdi>
        </p>
      )}
      {requestId !== '' && (
        <p>
          {words.requestId} <code>{requestId}</code>
        </p>
      )}
      {isSignedOut && (
        <p>
          <a class="button" href={back}>
            {words.signInAgain}
          </a>
        </p>
      )}
      {!isSignedOut && retry && (
        <p>
          <button type="button" onClick={retry}>
            {words.tryAgain}
          </button>
        </p>
      )}
    </div>
  )
}

type Explained = { title: string; text: string; requestId: string; isSignedOut: boolean; isStale: boolean }

/** `isStale`: what was asked for takes a sign-in of just now. */
function explain(error: unknown): Explained {
  const no = { requestId: '', isSignedOut: false, isStale: false }
  if (!(error instanceof Refusal)) return { ...no, title: words.consoleFailed, text: String(error) }
  const { status, message, reason, requestId } = error
  const isStale = reason === 'REAUTHENTICATION_REQUIRED'
  const title = isStale
    ? words.staleSignIn
    : (words.statuses[status] ?? (status === 0 ? words.unreachable : words.refused))
  const isSignedOut = status === 401 || isStale
  return { title, text: isSignedOut ? '' : message, requestId, isSignedOut, isStale }
}

/** There is nothing here yet; `command` is what would change that. */
export function Empty({ children, command }: { children: ComponentChildren; command?: string }) {
  return (
    <div class="notice">
      <p>{children}</p>
      {command !== undefined && (
        <pre>
          <code>{command}</code>
        </pre>
      )}
    </div>
  )
}

/** Says so where a list has more than what was read of it. */
export function Cut({ of: { items, total, next } }: { of: Paged<unknown> }) {
  if (next === '') return null
  return (
    <Note kind="warn">{total === undefined ? words.moreThan(items.length) : words.onlySome(items.length, total)}</Note>
  )
}

/** Something to know of what is shown; never an error. */
export function Note({ children, kind = '' }: { children: ComponentChildren; kind?: '' | 'warn' | 'good' }) {
  return (
    <div class={`notice ${kind}`} role={kind === 'good' ? 'status' : undefined}>
      {children}
    </div>
  )
}
