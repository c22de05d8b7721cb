// Output of a command's results, in the requested format.

import { jsonText, plain, table } from '#lib/terminal/plain-text.ts'
import { failure, usageError } from './cli-error.ts'
import type { OptionSpec, Terminal } from './command.ts'

export type Item = Readonly<Record<string, unknown>> & { uid: string }
export type Named = Item & { name: string }
/**
 * Columns by their headings. Each function returns the value for an item, or undefined for an empty cell; `names` has the names
 * of groups and roles in the items.
 */
export type Columns<T extends Item = Item> = Readonly<Record<string, (item: T, names: Names) => string | undefined>>
/** Names by uid. A resource that the caller cannot see is shown by its uid. */
export type Names = { of(uid: string): string; path(uid: string): string }

/** Output format of items of one kind. */
export type View<T extends Item = Item> = {
  /** Name of the item's variable with `-o env`, such as `IDENTITY`. */
  word: string
  columns: Columns<T>
  /** Columns that only `-o wide` shows, after the others. */
  more: Columns<T>
  /** Label of an item in texts for users. */
  label(item: T, names: Names): string
  /** Path of an item in the hierarchy, as names with slashes. */
  at(item: T, names: Names): string
  /** Form of an item in JSON output. */
  json(item: T): object
}

export const listFormats = ['table', 'wide', 'json', 'id', 'terse', 'csv', 'markdown', 'tree', 'none'] as const
export const oneFormats = ['table', 'wide', 'json', 'id', 'terse', 'env', 'none'] as const
type Format = (typeof listFormats)[number] | (typeof oneFormats)[number]

export function outputOf(formats: readonly Format[]): OptionSpec {
  const summary = 'Output format; id and json are for programs; default: table'
  return { flags: '-o, --output <format>', summary, choices: formats }
}

/** Prints items in a format. JSON has the form `{"items":[…]}`. */
export function printList<T extends Item>(
  { print }: Terminal,
  format: unknown,
  view: View<T>,
  items: readonly T[],
  names: Names,
): void {
  const columns = { ...view.columns, ...(format === 'wide' && view.more) }
  const heads = Object.keys(columns)
  const rows = items.map((item) => heads.map((head) => columns[head]!(item, names) ?? ''))
  const print1: Record<string, () => readonly string[]> = {
    none: () => [],
    json: () => [jsonText({ items: items.map(view.json) }, 2)],
    id: () => items.map(({ uid }) => plain(uid)),
    terse: () => items.map((item) => plain(view.label(item, names))),
    csv: () => [heads, ...rows].map((row) => row.map(csvCell).join(',')),
    markdown: () => markdown(heads, rows),
    tree: () => tree(items.map((item) => view.at(item, names))),
  }
  for (const line of (print1[String(format)] ?? (() => table([heads, ...rows])))()) print(line)
}

/** Prints one item, with a line for each column. */
export function printOne<T extends Item>(
  { print }: Terminal,
  format: unknown,
  view: View<T>,
  item: T,
  names: Names,
): void {
  if (format === 'none') return
  if (format === 'json') print(jsonText(view.json(item), 2))
  else if (format === 'id') print(plain(item.uid))
  else if (format === 'terse') print(plain(view.label(item, names)))
  else if (format === 'env') {
    print(`export PINFOLD_${view.word}_ID=${shellWord(plain(item.uid))}`)
    print(`export PINFOLD_${view.word}_NAME=${shellWord(plain(view.label(item, names)))}`)
  } else {
    const rows = Object.entries({ ...view.columns, ...view.more }).map(([head, value]) => {
      return [head.toLowerCase(), value(item, names) ?? '']
    })
    for (const line of table(rows.filter(([, value]) => value !== ''))) print(line)
  }
}

function markdown(heads: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => plain(cell).replace(/[|\\]/g, '\\$&')).join(' | ')} |`
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)]
}

/**
 * Cell of a CSV file. A spreadsheet reads a text that begins with `=`, `+`, `-` or `@` as a formula, so such a text gets an apostrophe
 * in front.
 */
function csvCell(text: string): string {
  const safe = /^[=+\-@]/.test(text) ? `'${plain(text)}` : plain(text)
  return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** One word for a shell, whatever it is. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

type Branch = Map<string, Branch>

/** Paths as a tree, with all their parents. */
function tree(paths: readonly string[]): string[] {
  const root: Branch = new Map()
  for (const path of paths.toSorted()) {
    let at = root
    for (const part of path.split('/')) {
      const below: Branch = at.get(part) ?? new Map()
      at.set(part, below)
      at = below
    }
  }
  const lines: string[] = []
  const walk = (branch: Branch, before: string, top: boolean) => {
    const names = [...branch.keys()]
    names.forEach((name, i) => {
      const last = i === names.length - 1
      lines.push(top ? plain(name) : `${before}${last ? '└─ ' : '├─ '}${plain(name)}`)
      walk(branch.get(name)!, top ? '' : `${before}${last ? '   ' : '│  '}`, false)
    })
  }
  walk(root, '', true)
  return lines
}

/** Asks for confirmation before data is lost. Without a terminal, `--yes` is required. */
export async function confirm(terminal: Terminal, yes: unknown, what: string): Promise<void> {
  if (yes === true) return
  if (!terminal.ask) {
    throw usageError(`nothing was changed: this would ${what}, and there is no terminal to confirm it; add --yes`)
  }
  const answer = await terminal.ask(`This will ${what}. Continue? [y/N] `)
  if (!/^y(?:es)?$/i.test(answer.trim())) throw failure('nothing was changed')
}

export const yesOption: OptionSpec = { flags: '-y, --yes', summary: 'Do not ask for confirmation' }

const common: Readonly<Record<string, string>> = { uid: 'id', createTime: 'createdAt', updateTime: 'updatedAt' }

/** Renames the fields of an item from version 2 to version 1. `more` has the names of one resource. Other fields keep theirs. */
export function v1(more: Readonly<Record<string, string>> = {}): (item: object) => object {
  const names = { ...common, ...more }
  return (item) => Object.fromEntries(Object.entries(item).map(([name, value]) => [names[name] ?? name, value]))
}
