// Prose of a file: paragraphs of Markdown, comments, test names and messages. Code is left out.
import { scan } from './scan.ts'

/** A piece of prose, its line and its kind. Code in the text is replaced by "CODE", but not in the text `asWritten`. */
export type Text = {
  line: number
  kind: 'docs' | 'comment' | 'test name' | 'message'
  text: string
  asWritten?: string
  /** True for a cell of a table. */
  isCell?: boolean
}

/** Prose of a file. The file extension selects the reader. */
export function textsOf(path: string, content: string): Text[] {
  if (path.endsWith('.md')) return ofMarkdown(content)
  if (path.endsWith('.proto')) return comments(content)
  const isProduct = /^(?:src|console)\//.test(path) && !/\.test\.tsx?$|\/migrations\//.test(path)
  return [...comments(content), ...(isProduct ? messages(content) : testNames(content))]
}

/** Words of SQL, and syntax of regular expressions, paths and code. */
const noProse =
  /\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|WHERE|JOIN|VALUES|FROM|SET|ORDER BY|PRAGMA)\b|\bAS "|(?:\.com .*){3}|[{}<>=]|\\[sdw(]|\(\?/

/** Strings of at least four words in lower case: help texts, errors, log messages and console texts. */
function messages(content: string): Text[] {
  const texts: Text[] = []
  for (const { start, text } of scan(content).strings) {
    const line = content.slice(0, start).split('\n').length
    for (const paragraph of text
      .replace(/\\n/g, '\n')
      .replace(/\\(.)/g, '$1')
      .split(/\n\s*\n|(?<=[.:])\n|\n(?=- )/)) {
      const one = plain(paragraph).replace(/\s+/g, ' ').trim()
      const words = one.match(/(?<![\w./-])[a-z]{2,}(?![\w./-]\w)/g) ?? []
      if (words.length >= 4 && !noProse.test(one)) texts.push({ line, kind: 'message', text: one })
    }
  }
  return texts
}

/** Paragraphs, list items and table cells. Headings, code blocks and HTML comments are left out. */
function ofMarkdown(content: string): Text[] {
  const texts: Text[] = []
  let fence = ''
  let open: Text | undefined
  const lines = content.replace(/<!--[\s\S]*?-->/g, (comment) => comment.replace(/[^\n]/g, '')).split('\n')
  for (const [i, raw] of lines.entries()) {
    const mark = /^\s*(`{3,}|~{3,})/.exec(raw)?.[1]
    if (fence !== '' || mark !== undefined) {
      if (mark !== undefined && (fence === '' || raw.trim() === fence)) fence = fence === '' ? mark : ''
      open = undefined
      continue
    }
    const line = raw.trim()
    if (line === '' || /^#|^\|[\s:|-]+\|$|^!\[/.test(line)) {
      open = undefined
    } else if (line.startsWith('|')) {
      open = undefined
      for (const cell of line.split(/(?<!\\)\|/)) {
        const one = add(texts, i, plain(cell))
        if (one) one.isCell = true
      }
    } else {
      const item = /^(?:[-*+]|\d+\.)\s+(.*)$/.exec(line)?.[1]
      if (open && item === undefined) open.text += ` ${plain(line)}`
      else open = add(texts, i, plain(item ?? line))
    }
  }
  return texts.map((one) => ({ ...one, text: one.text.replace(/\s+/g, ' ').trim() }))
}

function add(texts: Text[], index: number, text: string): Text | undefined {
  if (!/[a-z]/i.test(text)) return undefined
  const one: Text = { line: index + 1, kind: 'docs', text }
  texts.push(one)
  return one
}

/** Without the marks of Markdown: code becomes "CODE", and a link its words. */
function plain(text: string): string {
  return text
    .replace(/`+[^`]*`+/g, 'CODE')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\*\*|__/g, '')
    .replace(/https?:\/\/\S+/g, 'CODE')
}

/** Comments. Consecutive `//` lines are one comment. */
function comments(content: string): Text[] {
  const texts: Text[] = []
  for (const { start, words } of wholeComments(content)) {
    const line = content.slice(0, start).split('\n').length
    for (const paragraph of words.split(/\n\s*\n/)) {
      // Indented lines of a comment are commands.
      const prose = paragraph.replace(/^ {2,}.*$/gm, '')
      const text = plain(prose).replace(/\s+/g, ' ').trim()
      if (!/[a-z]/i.test(text) || /^(?:biome-ignore|@ts-|#|eslint|buf:lint)/.test(text)) continue
      texts.push({ line, kind: 'comment', text, asWritten: prose.replace(/\s+/g, ' ').trim() })
    }
  }
  return texts
}

function wholeComments(content: string): { start: number; words: string }[] {
  const found: { start: number; end: number; isLine: boolean; words: string }[] = []
  for (const { start, end, isBlock, isAlone } of scan(content).comments) {
    const text = content.slice(start, end)
    const words = isBlock ? text.replace(/^\/\*\*?|\*\/$/g, '').replace(/^\s*\* ?/gm, '') : text.replace(/^\/\/ ?/, '')
    const last = found.at(-1)
    const continues = last?.isLine && isAlone && !isBlock && /^\n[ \t]*$/.test(content.slice(last.end, start))
    if (continues) Object.assign(last, { end, words: `${last.words}\n${words}` })
    else found.push({ start, end, isLine: isAlone && !isBlock, words })
  }
  return found
}

/** First argument of `test(…)`, if it is a literal. */
function testNames(content: string): Text[] {
  return [...content.matchAll(/^[ \t]*(?:await )?(?:test|t\.test)\(\s*(['`])((?:(?!\1)[^\\\n]|\\.)*)\1/gm)].map(
    (match) => ({
      line: content.slice(0, match.index).split('\n').length,
      kind: 'test name',
      text: match[2]!.replace(/\$\{[^}]*\}/g, 'CODE').replace(/\\(.)/g, '$1'),
      asWritten: match[2]!,
    }),
  )
}
