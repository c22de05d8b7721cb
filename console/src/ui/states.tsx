// States that every screen can have: loading, error, empty, incomplete.
import type { ComponentChildren } from 'preact'
import { here } from '../app/route.ts'
import { ask, MissingPath, Refusal } from '../data/api.ts'
import type { Paged } from '../data/list.ts'
import type { Grantor } from '../data/types.ts'
import { words } from '../words.ts'
import { Icon, type IconName } from './icon.tsx'
import { type Loaded, useLoad } from './load.ts'
import { Code, Copy } from './text.tsx'

/** Shows the loaded data, the loading state or the error. */
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

/** Error message with the next step. */
export function Problem({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) {
  if (error instanceof MissingPath) return <NoAccess names={error.names} />
  const { title, text, requestId, isSignedOut, isStale } = explain(error)
  const { pathname, search } = here()
  const back = `/ui/signin?${new URLSearchParams({ return: pathname + search, ...(isStale && { fresh: 'true' }) })}`
  return (
    <div class="notice bad" role="alert">
      <Icon name="bad" />
      <div>
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
    </div>
  )
}

type Explained = { title: string; text: string; requestId: string; isSignedOut: boolean; isStale: boolean }

/** `isStale` is true if the action needs a newer sign-in. */
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

type EmptyProps = {
  children: ComponentChildren
  /** Command that adds the first item. */
  command?: string
  /** Button or link with the next action. */
  action?: ComponentChildren
}

/** Message for an empty list: one sentence, and the next action. */
export function Empty({ children, command, action }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name="empty" />
      <p>{children}</p>
      {command !== undefined && <Code text={command} label={words.copyCommand} />}
      {action !== undefined && <div class="actions">{action}</div>}
    </div>
  )
}

/** Warning for a list that was not read completely. */
export function Cut({ of: { items, total, next } }: { of: Paged<unknown> }) {
  if (next === '') return null
  return (
    <Note kind="warn">{total === undefined ? words.moreThan(items.length) : words.onlySome(items.length, total)}</Note>
  )
}

const icons: Record<string, IconName> = { warn: 'warn', bad: 'bad', info: 'info', good: 'good' }

type NoteProps = { children: ComponentChildren; kind?: '' | 'info' | 'warn' | 'good'; action?: ComponentChildren }

/** Note or warning. For errors, use `Problem`. */
export function Note({ children, kind = '', action }: NoteProps) {
  return (
    <div class={`notice ${kind}`} role={kind === 'good' ? 'status' : undefined}>
      <Icon name={icons[kind] ?? 'info'} />
      <div>{children}</div>
      {action}
    </div>
  )
}

/**
 * Answer for an address that the user cannot see, or that does not exist. Members of its organization see whom to ask for access.
 * Others see the text of a page that does not exist.
 */
function NoAccess({ names }: { names: readonly string[] }) {
  const [organization = ''] = names
  const read = useLoad(`grantors ${organization}`, (signal) =>
    ask<{ grantors: Grantor[] }>('GET', '/control/v1/grantors:lookup', { query: { organization }, signal }).catch(
      () => ({
        grantors: [],
      }),
    ),
  )
  if (read.data === undefined) return <Waiting />
  const { grantors } = read.data
  if (grantors.length === 0) return <Empty>{words.pageNotFoundText}</Empty>
  const message = words.accessMessage(names.join('/'), location.href)
  return (
    <Empty
      action={
        <Copy text={message} label={words.copyAccessMessage}>
          {words.copyAccessMessage}
        </Copy>
      }
    >
      {words.noAccessTo(names.join('/'))} {words.askForAccess(organization)}{' '}
      <bdi>{grantors.map(({ name, email }) => (name && email ? `${name} (${email})` : name || email)).join(', ')}</bdi>
    </Empty>
  )
}
