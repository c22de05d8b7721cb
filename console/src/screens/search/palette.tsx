// Command palette: a dialog with a field that searches everything while the user types, and offers recent pages and actions. It
// is a combobox with a list.
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { organization, organizationUid } from '../../app/organization.ts'
import { closePalette } from '../../app/palette.ts'
import { paths } from '../../app/paths.ts'
import { go, here } from '../../app/route.ts'
import { Ago } from '../../ui/ago.tsx'
import { Icon } from '../../ui/icon.tsx'
import { nameOf } from '../../ui/screen.tsx'
import { searchWords } from '../../words/search.ts'
import { words } from '../../words.ts'
import { type Entry, type EntryGroup, foundEntries, startEntries } from './entries.ts'
import { Marked } from './marked.tsx'
import { type Kind, perKind, type Suggestions, suggest } from './results.ts'

const pauseMs = 60

export function Palette({ text }: { text: string }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const field = useRef<HTMLInputElement>(null)
  const id = useId()
  const { typed, kind, isEverywhere, groups, active, found, type, point, press, open, searchAllKinds, searchAll } =
    usePalette(text)
  useEffect(() => {
    dialog.current?.showModal()
    field.current?.focus()
    field.current?.setSelectionRange(text.length, text.length)
  }, [])
  const clickOutside = (event: MouseEvent) => {
    if (event.target === dialog.current) dialog.current?.close()
  }
  const isSome = active >= 0
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog
    <dialog class="palette" ref={dialog} aria-label={searchWords.title} onClose={closePalette} onClick={clickOutside}>
      <div class="palette-field">
        <Icon name="search" />
        <input
          id="q"
          ref={field}
          role="combobox"
          aria-label={searchWords.title}
          aria-expanded={isSome}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={isSome ? `${id}-${active}` : undefined}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          maxLength={128}
          placeholder={
            kind === undefined ? searchWords.placeholder : searchWords.placeholderIn(searchWords.kinds[kind])
          }
          value={typed}
          onInput={(event) => type((event.target as HTMLInputElement).value)}
          onKeyDown={press}
        />
        {kind !== undefined && (
          <Chip label={searchWords.kinds[kind]} title={searchWords.searchAllKinds} onRemove={searchAllKinds} />
        )}
        {!isEverywhere && (
          <Chip
            label={searchWords.inOrganization(nameOf(organization.value))}
            title={searchWords.searchEverywhere}
            onRemove={searchAll}
          />
        )}
        <form method="dialog">
          <button type="submit" class="ghost icon-button" aria-label={words.close} title={words.close}>
            <Icon name="close" />
          </button>
        </form>
      </div>
      <EntryList
        {...{ id, groups, active }}
        q={typed.trim()}
        note={noteOf(typed.trim(), found, groups)}
        onOpen={open}
        onPoint={point}
      />
      <p class="palette-foot">
        <span class="palette-keys" aria-hidden="true">
          <kbd>↑</kbd> <kbd>↓</kbd> {searchWords.select} <kbd>{searchWords.tabKey}</kbd> {searchWords.onlyKind}{' '}
          <kbd>{searchWords.newTabKey}</kbd> {searchWords.newTab}
        </span>
        <span role="status">{statusOf(typed.trim(), found)}</span>
      </p>
    </dialog>
  )
}

/** State of the palette: the text, its limits, the entries and the active one. */
function usePalette(text: string) {
  const [typed, setTyped] = useState(text)
  const [kind, setKind] = useState<Kind>()
  const [isEverywhere, setEverywhere] = useState(organizationUid() === '')
  const [at, point] = useState(0)
  const q = typed.trim()
  const found = useSuggestions(q, kind, isEverywhere ? '' : organizationUid())
  const within = isEverywhere ? '' : organization.value
  const results = found.data?.results ?? []
  const groups = [
    ...(q === '' ? startEntries(here().pathname) : foundEntries(q, results, within)),
    ...moreOf(q, isEverywhere),
  ]
  const entries = groups.flatMap((group) => group.entries)
  const active = Math.min(at, entries.length - 1)
  const limit = (change: () => void) => () => {
    change()
    point(0)
  }
  const [searchAllKinds, searchAll] = [limit(() => setKind(undefined)), limit(() => setEverywhere(true))]
  const open = ({ href }: Entry, isInNewTab = false) => {
    if (href === everywhere) return searchAll()
    if (isInNewTab) return void window.open(href, '_blank', 'noopener')
    closePalette()
    go(href)
  }
  const openActive = (isInNewTab: boolean) => {
    // Results of an earlier text are not opened. The page of results finds the present text.
    if (q !== '' && !found.isCurrent) open(allResults(q), isInNewTab)
    else if (entries[active]) open(entries[active], isInNewTab)
  }
  const limitKind = () => {
    const next = entries[active]?.kind
    if (next === undefined || kind !== undefined) return false
    limit(() => setKind(next))()
    return true
  }
  const press = (event: KeyboardEvent) => {
    const { key, ctrlKey, metaKey, shiftKey } = event
    const step = { ArrowDown: 1, ArrowUp: -1 }[key]
    if (event.isComposing) return
    if (step !== undefined) point((active + step + entries.length) % Math.max(1, entries.length))
    else if (key === 'Enter') openActive(ctrlKey || metaKey)
    else if (key === 'Backspace' && typed === '') (kind === undefined ? searchAll : searchAllKinds)()
    else if (key !== 'Tab' || shiftKey || !limitKind()) return
    event.preventDefault()
  }
  const type = (next: string) => {
    setTyped(next)
    point(0)
  }
  return { typed, kind, isEverywhere, groups, active, found, type, point, press, open, searchAllKinds, searchAll }
}

/** Address of the entry that removes the limit to the organization. */
const everywhere = '#everywhere'

const allResults = (q: string): Entry => link(searchWords.allResults(q), paths.search(q))
const link = (label: string, href: string): Entry => ({ key: href, icon: 'search', label, detail: '', href })

/** Entries after the results: the page with all of them, and a search in all organizations. */
function moreOf(q: string, isEverywhere: boolean): EntryGroup[] {
  if (q === '') return []
  const wider = isEverywhere ? [] : [link(searchWords.everywhere(q), everywhere)]
  return [{ name: searchWords.moreGroup, entries: [allResults(q), ...wider] }]
}

type Found = { data: Suggestions | undefined; isFailed: boolean; isCurrent: boolean; isFull: boolean }

/** Suggestions for a text. While the next ones are loaded, the earlier ones stay. */
function useSuggestions(q: string, kind: Kind | undefined, scope: string): Found {
  const key = `${scope} ${kind ?? ''} ${q}`
  const [got, setGot] = useState<{ key: string; data?: Suggestions; isFailed?: boolean }>({ key: '' })
  useEffect(() => {
    if (q === '') return
    const leave = new AbortController()
    const timer = setTimeout(() => {
      suggest({ q, kind, scope }, leave.signal).then(
        (data) => !leave.signal.aborted && setGot({ key, data }),
        () => !leave.signal.aborted && setGot({ key, isFailed: true }),
      )
    }, pauseMs)
    return () => {
      clearTimeout(timer)
      leave.abort()
    }
  }, [key])
  const isCurrent = got.key === key
  const data = q === '' ? undefined : got.data
  const most = kind === undefined ? perKind : Number.POSITIVE_INFINITY
  const counts = Map.groupBy(data?.results ?? [], (one) => one.kind)
  const isFull = [...counts.values()].some(({ length }) => length >= most)
  return { data, isFailed: isCurrent && got.isFailed === true, isCurrent, isFull }
}

function noteOf(q: string, { data, isFailed, isCurrent }: Found, groups: readonly EntryGroup[]): string {
  if (q === '') return ''
  if (isFailed) return searchWords.failed
  if (!isCurrent && data === undefined) return searchWords.searching
  if (data?.isIncomplete) return searchWords.searchStopped
  return isCurrent && groups.length === 1 ? searchWords.none(q) : ''
}

const statusOf = (q: string, { data, isCurrent, isFull }: Found): string =>
  q === '' || !isCurrent || !data ? '' : searchWords.found(data.results.length, isFull || data.isIncomplete)

function Chip({ label, title, onRemove }: { label: string; title: string; onRemove: () => void }) {
  return (
    <button type="button" class="chip set" title={title} aria-label={`${label}. ${title}`} onClick={onRemove}>
      <bdi>{label}</bdi> <Icon name="close" />
    </button>
  )
}

type ListProps = {
  id: string
  groups: readonly EntryGroup[]
  active: number
  q: string
  note: string
  onOpen: (entry: Entry, inNewTab?: boolean) => void
  onPoint: (at: number) => void
}

/** List below the field. The focus stays in the field, so the entries need no keys of their own. */
function EntryList({ id, groups, active, q, note, onOpen, onPoint }: ListProps) {
  const list = useRef<HTMLDivElement>(null)
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [active])
  const starts = groups.map((_, g) => groups.slice(0, g).reduce((sum, { entries }) => sum + entries.length, 0))
  return (
    <div class="palette-list" ref={list}>
      {note !== '' && <p class="hint">{note}</p>}
      <div id={`${id}-list`} role="listbox" aria-label={searchWords.foundNames}>
        {groups.map(({ name, entries }, g) => (
          // biome-ignore lint/a11y/useSemanticElements: a list of options cannot have a fieldset
          <div key={name} role="group" aria-labelledby={`${id}-group-${g}`}>
            <div class="palette-group" id={`${id}-group-${g}`} role="presentation">
              {name}
            </div>
            {entries.map((entry, i) => {
              const position = starts[g]! + i
              const isActive = position === active
              return (
                <Option
                  key={entry.key}
                  id={`${id}-${position}`}
                  {...{ entry, isActive, q, onOpen }}
                  onPoint={() => onPoint(position)}
                />
              )
            })}
          </div>
        ))}
      </div>
    </div>
  )
}

type OptionProps = {
  id: string
  entry: Entry
  isActive: boolean
  q: string
  onOpen: (entry: Entry) => void
  onPoint: () => void
}

function Option({ id, entry, isActive, q, onOpen, onPoint }: OptionProps) {
  const click = (event: MouseEvent) => {
    // The browser opens a link with these keys in a new tab or window.
    if (event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    onOpen(entry)
  }
  return (
    <a
      id={id}
      role="option"
      href={entry.href}
      tabIndex={-1}
      aria-selected={isActive}
      onMouseMove={() => isActive || onPoint()}
      onMouseDown={(event) => event.preventDefault()}
      onClick={click}
    >
      <Icon name={entry.icon} />
      <bdi class="palette-name">{entry.kind ? <Marked label={entry.label} q={q} /> : entry.label}</bdi>
      <bdi class="palette-detail">{entry.detail}</bdi>
      <span class="palette-end">
        {isActive && (
          <>
            {searchWords.open} <kbd>{searchWords.enterKey}</kbd>
          </>
        )}
        {!isActive && entry.time !== undefined && <Ago at={entry.time} />}
      </span>
    </a>
  )
}
