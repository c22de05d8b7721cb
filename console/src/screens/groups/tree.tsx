// Folders and repositories of a group as a tree. A folder shows the numbers of everything in it.
import { useEffect, useRef, useState } from 'preact/hooks'
import { paths } from '../../app/paths.ts'
import { go, here } from '../../app/route.ts'
import type { ScopeSummary } from '../../data/types.ts'
import { Ago } from '../../ui/ago.tsx'
import { ScanResult } from '../../ui/findings.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Problem } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { bytes } from '../../ui/text.tsx'
import { groupWords } from '../../words/groups.ts'
import { numbers, words } from '../../words.ts'
import { type Level, type Row, readLevel } from './levels.ts'

type Props = { names: readonly string[]; level: Level; query: URLSearchParams; order: string }

/** Open folders are in the address, as paths below the group. */
export function Tree({ names, level, query, order }: Props) {
  const open = (query.get('open') ?? '').split(',').filter((one) => one !== '')
  const [inside, setInside] = useState<ReadonlyMap<string, Level>>(new Map())
  const [error, setError] = useState<unknown>()
  const leaving = useRef(new AbortController())
  useEffect(() => () => leaving.current.abort(), [])
  const rows = rowsOf(level, { open, inside, names, depth: 0, above: '' })
  const missing = rows.find(({ row, path }) => row.isFolder && open.includes(path) && !inside.has(path))
  const missingPath = missing?.path
  useEffect(() => {
    if (!missing) return
    readLevel(missing.row.uid, { order }, leaving.current.signal).then(
      (read) => setInside((before) => new Map(before).set(missing.path, read)),
      (cause: unknown) => !leaving.current.signal.aborted && setError(cause),
    )
  }, [missingPath, order])
  const toggle = (path: string) => {
    const next = open.includes(path) ? open.filter((one) => one !== path) : [...open, path]
    go(paths.with(here(), { open: next.join(',') || undefined }), { replace: true })
  }
  return (
    <>
      {error !== undefined && <Problem error={error} />}
      <Table
        caption={groupWords.content}
        columns={columnsFor(open, toggle)}
        items={rows}
        keyOf={({ row }) => row.uid}
        order={order}
      />
      <p class="hint">{groupWords.ofNewestTag}</p>
    </>
  )
}

export type TreeRow = {
  row: Row
  summary: ScopeSummary | undefined
  path: string
  names: readonly string[]
  depth: number
}

type Opened = {
  open: readonly string[]
  inside: ReadonlyMap<string, Level>
  names: readonly string[]
  depth: number
  above: string
}

/** Deeper folders have no further indent, and open as pages of their own. */
const maxDepth = 3

function rowsOf({ rows, summaries }: Level, { open, inside, names, depth, above }: Opened): TreeRow[] {
  return rows.flatMap((row) => {
    const path = above === '' ? row.name : `${above}/${row.name}`
    const own = { row, summary: summaries.get(row.uid), path, names: [...names, row.name], depth }
    const below = row.isFolder && open.includes(path) && depth < maxDepth ? inside.get(path) : undefined
    if (!below) return [own]
    return [own, ...rowsOf(below, { open, inside, names: own.names, depth: depth + 1, above: path })]
  })
}

const columnsFor = (open: readonly string[], toggle: (path: string) => void): Column<TreeRow>[] => [
  {
    title: words.name,
    order: 'name',
    isHead: true,
    cell: (one) => <Name one={one} isOpen={open.includes(one.path)} toggle={() => toggle(one.path)} />,
  },
  ...factColumns,
]

/** Columns with the facts of a group or a repository. */
export const factColumns: Column<TreeRow>[] = [
  {
    title: words.tags,
    isNumber: true,
    cell: ({ summary }) => (summary ? numbers(Number(summary.tags)) : <span class="dim">–</span>),
  },
  {
    title: words.vulnerabilities,
    cell: ({ row, summary, names }) => {
      const image = summary?.newestImage
      if (row.isFolder || !image) return <span class="dim">–</span>
      const href = paths.digest(names, image.digest)
      return <ScanResult counts={image.vulnerabilities} coverage={image.coverage} href={href} />
    },
  },
  {
    title: groupWords.newestTag,
    cell: ({ summary, names }) =>
      summary?.newestTag ? (
        <a href={paths.tag(names, summary.newestTag)}>{summary.newestTag}</a>
      ) : (
        <span class="dim">–</span>
      ),
  },
  {
    title: words.size,
    isNumber: true,
    cell: ({ summary }) => {
      const size = summary?.newestImage?.size
      return size ? bytes(Number(size)) : <span class="dim">–</span>
    },
  },
  {
    title: words.updatedAt,
    cell: ({ summary }) => (summary?.updateTime ? <Ago at={summary.updateTime} /> : <span class="dim">–</span>),
  },
]

function Name({ one, isOpen, toggle }: { one: TreeRow; isOpen: boolean; toggle: () => void }) {
  const { row, summary, names, depth } = one
  const href = row.isFolder ? paths.group(names) : paths.repo(names)
  return (
    <span class={`tree depth-${depth}`}>
      {row.isFolder && depth < maxDepth ? (
        <button
          type="button"
          class="ghost icon-button small"
          aria-expanded={isOpen}
          aria-label={isOpen ? groupWords.closeFolder(row.name) : groupWords.openFolder(row.name)}
          onClick={toggle}
        >
          <Icon name={isOpen ? 'open' : 'next'} />
        </button>
      ) : (
        <i />
      )}
      <Icon name={row.isFolder ? 'folder' : 'repository'} />
      <span>
        <a data-main href={href} title={row.description || undefined}>
          <bdi>{row.name}</bdi>
        </a>{' '}
        {row.isFolder && summary && <span class="hint">{groupWords.repoCount(Number(summary.repos))}</span>}
      </span>
    </span>
  )
}
