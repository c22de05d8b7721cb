// Small parts of screens: times, digests, badges and copy buttons.
import { Fragment } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { isUtc } from '../app/settings.ts'
import { words } from '../words.ts'
import { Icon, type IconName } from './icon.tsx'

/** Time in UTC or in the zone of the browser. */
export function Time({ at }: { at: string | undefined }) {
  if (!at) return <span class="dim">–</span>
  return <time dateTime={at}>{timeText(at)}</time>
}

/** Formatters are created once, since creating one takes longer than using it a hundred times. */
const formats = (options: Intl.DateTimeFormatOptions) => {
  const [utc, local] = [{ ...options, timeZone: 'UTC' }, options].map((one) => new Intl.DateTimeFormat('en-GB', one))
  return (at: Date | number): string => (isUtc.value ? utc! : local!).format(at)
}
const moment = formats({
  ...{ day: 'numeric', month: 'short', year: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', timeZoneName: 'short' },
})

/** Time with the name of its zone. */
export const timeText = (at: string): string => moment(new Date(at))

/** Short form of a day, for the timeline. */
export const dayText = formats({ day: 'numeric', month: 'short' })

/** Short form of a time of day, for a timeline of less than two days. */
export const hourText = formats({ hour: '2-digit', minute: '2-digit' })

/** First eight hexadecimal digits of a digest. */
export const hex8 = (digest: string): string => digest.replace(/^sha\d+:([0-9a-f]{8}).*$/, '$1')

/** Path or event type. If it is too long for a column, it continues on the next line after a slash or a dot. */
export function Breakable({ text }: { text: string }) {
  return (
    <bdi>
      {text.split(text.includes('/') ? /(?<=\/)/ : /(?<=\.)/).map((part, i) => (
        <Fragment key={i}>
          {i > 0 && <wbr />}
          {part}
        </Fragment>
      ))}
    </bdi>
  )
}

type DigestProps = { of: string; href?: string; isMain?: boolean; isBare?: boolean }

/** Beginning of a digest. The tooltip shows the whole digest. With `isBare`, the digest is a single node, for long tables. */
export function Digest({ of, href, isMain, isBare }: DigestProps) {
  if (of === '') return <span class="dim">–</span>
  if (isBare && href !== undefined) {
    return (
      <a class="mono" href={href} title={of}>
        {hex8(of)}
      </a>
    )
  }
  const code = <code title={of}>{hex8(of)}</code>
  return href === undefined ? (
    code
  ) : (
    <a href={href} {...(isMain && { 'data-main': '' })}>
      {code}
    </a>
  )
}

/** Copy button. `label` names the copied text for screen readers. */
export function Copy({
  text,
  label,
  children,
  isPin,
}: {
  text: string
  label: string
  children?: string
  isPin?: boolean
}) {
  const [isCopied, setCopied] = useState(false)
  const [isFailed, setFailed] = useState(false)
  const copy = async () => {
    const isDone = await write(text)
    setFailed(!isDone)
    setCopied(isDone)
    if (isDone) setTimeout(() => setCopied(false), 2000)
  }
  const button = (
    <button
      type="button"
      class="small"
      title={text}
      aria-label={label}
      onClick={copy}
      {...(isPin && { 'data-pin': '' })}
    >
      {isCopied ? words.copied : (children ?? words.copy)}
      {isCopied && (
        <span class="unseen" role="status">
          {words.copied}
        </span>
      )}
    </button>
  )
  return isFailed ? (
    <>
      {button} <Selected text={text} label={label} />
    </>
  ) : (
    button
  )
}

/** Text in a selected field, for browsers that refuse to copy. */
function Selected({ text, label }: { text: string; label: string }) {
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    area.current?.focus()
    area.current?.select()
  }, [])
  return (
    <span class="not-copied">
      <span role="alert">{words.notCopied}</span>
      <textarea ref={area} readOnly rows={Math.min(text.split('\n').length, 6)} aria-label={label} value={text} />
    </span>
  )
}

/** Copies a text. Without a clipboard, as over http, copies a selection. Returns whether the text was copied. */
async function write(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return writeSelected(text)
  }
}

function writeSelected(text: string): boolean {
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'unseen'
  document.body.append(area)
  area.select()
  try {
    return document.execCommand('copy')
  } catch {
    return false
  } finally {
    area.remove()
  }
}

/** A command or a text with a copy button. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
      <Copy text={text} label={label} />
    </div>
  )
}

const units = ['B', 'kB', 'MB', 'GB', 'TB']

export function bytes(count: number): string {
  const power = count < 1000 ? 0 : Math.min(Math.floor(Math.log10(count) / 3), units.length - 1)
  const scaled = count / 1000 ** power
  return `${power === 0 ? scaled : scaled.toFixed(1)} ${units[power]}`
}

const badgeIcons: Partial<Record<string, IconName>> = { good: 'good', bad: 'bad', warn: 'warn' }

/** State as a word with an icon, so that users do not need to see its color. */
export function Badge({ kind, children }: { kind: 'good' | 'bad' | 'warn' | 'info' | 'plain'; children: string }) {
  const icon = badgeIcons[kind]
  return (
    <span class={`badge ${kind}`}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </span>
  )
}
