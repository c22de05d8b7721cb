// Tables and their page links. A table that is wider than the page scrolls by itself.
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { paths } from '../app/paths.ts'
import { go, here } from '../app/route.ts'
import { numbers, words } from '../words.ts'
import { Icon } from './icon.tsx'
import { usePage } from './more.tsx'
import { Note } from './states.tsx'

export type Column<T> = {
  title: string
  cell: (item: T) => ComponentChildren
  /** Field by which the list is sorted after a click on the title. */
  order?: string
  /** True if the cell is the header of its row. */
  isHead?: boolean
  /** True for numbers, which align at the end. */
  isNumber?: boolean
}

type Props<T> = {
  caption: string
  columns: readonly Column<T>[]
  items: readonly T[]
  keyOf: (item: T) => string
  /** Sort order in the address: a field, and `asc` or `desc`. */
  order?: string
  isCaptionShown?: boolean
  classOf?: (item: T) => string
}

export function Table<T>({ caption, columns, items, keyOf, order, isCaptionShown = false, classOf }: Props<T>) {
  const id = useId()
  const page = usePage()
  const box = useWide()
  return (
    // biome-ignore lint/a11y/useSemanticElements: a section cannot be named by a caption
    <div class="scroll" role="region" aria-labelledby={id} ref={box}>
      <table>
        <caption id={id} class={isCaptionShown ? '' : 'unseen'}>
          {page === 1 ? caption : words.pageOf(caption, page)}
        </caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.title} column={column} order={order} />
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={keyOf(item)} class={classOf?.(item)}>
              {columns.map(({ title, cell, isHead, isNumber }) =>
                isHead ? (
                  <th key={title} scope="row">
                    {cell(item)}
                  </th>
                ) : (
                  <td key={title} data-label={title} class={isNumber ? 'number' : undefined}>
                    {cell(item)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/**
 * Ref of the box around a table. Marks the box while the table is wider than it. Only such a box scrolls and can have the focus.
 * The header of other tables stays visible while the page scrolls.
 */
function useWide() {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const { current } = box
    if (!current) return
    const mark = () => {
      const { scrollWidth, clientWidth, scrollLeft } = current
      const isWide = current.firstElementChild!.scrollWidth > clientWidth + 1
      current.toggleAttribute('data-wide', isWide)
      current.toggleAttribute('data-more', isWide && scrollLeft + clientWidth < scrollWidth - 1)
      if (isWide) current.tabIndex = 0
      else current.removeAttribute('tabindex')
    }
    const watch = new ResizeObserver(mark)
    watch.observe(current)
    watch.observe(current.firstElementChild!)
    current.addEventListener('scroll', mark, { passive: true })
    return () => watch.disconnect()
  }, [])
  return box
}

function Heading<T>({ column, order }: { column: Column<T>; order: string | undefined }) {
  const [by = '', way = 'asc'] = (order ?? '').split(' ')
  if (column.order === undefined)
    return (
      <th scope="col" class={column.isNumber ? 'number' : undefined}>
        {column.title}
      </th>
    )
  const isBy = by === column.order
  const next = `${column.order} ${isBy && way === 'desc' ? 'asc' : 'desc'}`
  const sort = isBy ? (way === 'desc' ? 'descending' : 'ascending') : undefined
  return (
    <th scope="col" aria-sort={sort} class={column.isNumber ? 'number' : undefined}>
      <a href={paths.with(here(), { order: next, page: undefined })}>
        {column.title} {isBy && <Icon name={way === 'desc' ? 'down' : 'up'} />}
      </a>
    </th>
  )
}

type PagesProps = {
  page: number
  size: number
  total: number
  /** True for the page links below the list. */
  isBelow?: boolean
}

/** Links to other pages of a list. The number of the page is in the address. */
export function Pages({ page, size, total, isBelow = false }: PagesProps) {
  const last = Math.max(1, Math.ceil(total / size))
  if (last === 1) return <p class="pages">{words.rows(total)}</p>
  const at = (to: number) => paths.with(here(), { page: to === 1 ? undefined : to })
  const link = (to: number, text: string, isOn: boolean) =>
    isOn ? (
      <a class="button" href={at(to)}>
        {text}
      </a>
    ) : (
      <span class="button off" aria-disabled="true">
        {text}
      </span>
    )
  const jump = (event: SubmitEvent) => {
    event.preventDefault()
    const wanted = Number(new FormData(event.target as HTMLFormElement).get('page'))
    if (wanted >= 1) go(at(Math.min(Math.trunc(wanted), last)))
  }
  return (
    <nav class="pages" aria-label={isBelow ? words.pagesBelow : words.pages}>
      {link(1, words.first, page > 1)}
      {link(page - 1, words.previous, page > 1)}
      {link(page + 1, words.next, page < last)}
      {link(last, words.last, page < last)}
      <span>{words.rowsOf(numbers((page - 1) * size + 1), numbers(Math.min(page * size, total)), numbers(total))}</span>
      <form onSubmit={jump}>
        <label>
          {words.page} <input name="page" type="number" min="1" max={last} value={page} />
        </label>
        <button type="submit">{words.goToPage}</button>
      </form>
    </nav>
  )
}

type NoItemsProps = { page: number; size: number; total: number; children: ComponentChildren }

/** Replaces the table of a page without items. Shows `children` if the whole list is empty, and else a link to the last page. */
export function NoItems({ page, size, total, children }: NoItemsProps) {
  if (page === 1) return <>{children}</>
  const last = Math.ceil(total / size)
  return (
    <Note>
      {words.noSuchPage(page)}{' '}
      <a href={paths.with(here(), { page: last > 1 ? last : undefined })}>
        {last > 1 ? words.lastPage : words.firstPage}
      </a>
    </Note>
  )
}

/** Page number in the address. 1 if the address has none. */
export function pageOf(query: URLSearchParams): number {
  const page = Number(query.get('page') ?? 1)
  return Number.isSafeInteger(page) && page > 0 ? Math.min(page, 10_000_000) : 1
}
