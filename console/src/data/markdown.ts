// Parser of readme files. It knows a few elements of Markdown; all other text, including HTML, stays plain text.

export type Inline =
  | { is: 'text' | 'code' | 'strong' | 'em'; text: string }
  /** `href` is always an http or https URL. */
  | { is: 'link'; text: string; href: string }

export type Block =
  | { is: 'heading' | 'paragraph' | 'quote'; inlines: Inline[] }
  | { is: 'list'; isNumbered: boolean; items: Inline[][] }
  | { is: 'code'; text: string }

/** Maximum number of blocks, and of parts in a block. Text beyond these limits stays plain text. */
const most = { blocks: 300, parts: 100, all: 2000 }

/** Parses a text into blocks. `isCut` is true if the text has more blocks than the limit. */
export function readMarkdown(text: string): { blocks: Block[]; isCut: boolean } {
  const lines = text.replaceAll('\r\n', '\n').split('\n')
  const blocks: Block[] = []
  let at = 0
  let parts = 0
  while (at < lines.length && blocks.length < most.blocks && parts < most.all) {
    const [block, next] = blockAt(lines, at)
    if (block) blocks.push(block)
    parts += block ? partsOf(block) : 0
    at = next
  }
  return { blocks, isCut: at < lines.length }
}

function partsOf(block: Block): number {
  if (block.is === 'code') return 1
  return block.is === 'list' ? block.items.reduce((sum, one) => sum + one.length, 0) : block.inlines.length
}

const fence = /^ {0,3}(`{3,}|~{3,})/
const heading = /^ {0,3}#{1,6}\s+(.*)$/s
const item = /^\s*(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/s
const quote = /^ {0,3}>\s?(.*)$/s
const rule = /^ {0,3}(?:[-*_]\s*){3,}$/

/** Parses the block that begins at a line, and returns it with the next line. */
function blockAt(lines: readonly string[], at: number): [Block | undefined, number] {
  const line = lines[at]!
  if (line.trim() === '' || rule.test(line)) return [undefined, at + 1]
  const mark = fence.exec(line)?.[1]
  if (mark !== undefined) return codeAt(lines, at, mark)
  const title = heading.exec(line)?.[1]
  if (title !== undefined) return [{ is: 'heading', inlines: inlinesOf(title) }, at + 1]
  if (item.test(line)) return listAt(lines, at)
  const isQuote = quote.test(line)
  const end = endOf(lines, at, (one) => (isQuote ? !quote.test(one) : one.trim() === '' || startsBlock(one)))
  const text = lines.slice(at, end).map((one) => (isQuote ? quote.exec(one)![1]! : one.trim()))
  return [{ is: isQuote ? 'quote' : 'paragraph', inlines: inlinesOf(text.join(' ')) }, end]
}

const startsBlock = (line: string): boolean => [fence, heading, item, quote].some((one) => one.test(line))

/** Finds the first line after `at` that is not part of the block. */
function endOf(lines: readonly string[], at: number, isOver: (line: string) => boolean): number {
  let end = at + 1
  while (end < lines.length && !isOver(lines[end]!)) end++
  return end
}

function codeAt(lines: readonly string[], at: number, mark: string): [Block, number] {
  const end = endOf(lines, at, (line) => line.trim().startsWith(mark))
  return [{ is: 'code', text: lines.slice(at + 1, end).join('\n') }, end + 1]
}

function listAt(lines: readonly string[], at: number): [Block, number] {
  const items: string[] = []
  let end = at
  for (; end < lines.length && items.length <= most.parts; end++) {
    const line = lines[end]!
    const text = item.exec(line)?.[2]
    // An indented line belongs to the item before it.
    if (text !== undefined) items.push(text)
    else if (/^\s+\S/.test(line)) items.push(`${items.pop()} ${line.trim()}`)
    else break
  }
  return [{ is: 'list', isNumbered: item.exec(lines[at]!)![1] !== undefined, items: items.map(inlinesOf) }, end]
}

/** Code, strong, emphasis, links, and pictures, which become links. */
const inline =
  /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|!?\[([^[\]]{0,500})\]\(([^()\s]{0,2000})(?: "[^"]{0,500}")?\)/g

function inlinesOf(text: string): Inline[] {
  const found: Inline[] = []
  const say = (plain: string) => plain !== '' && found.push({ is: 'text', text: plain })
  let at = 0
  for (const match of text.matchAll(inline)) {
    if (found.length >= most.parts) break
    const [whole, code, strong, em, label, href = ''] = match
    say(text.slice(at, match.index))
    at = match.index + whole.length
    if (code !== undefined) found.push({ is: 'code', text: code })
    else if (strong !== undefined) found.push({ is: 'strong', text: strong })
    else if (em !== undefined) found.push({ is: 'em', text: em })
    else if (isOutside(href)) found.push({ is: 'link', text: label || href, href })
    else say(label ?? '')
  }
  say(text.slice(at))
  return found
}

/** Allows only http and https URLs. Relative paths are refused, since they would lead to pages of the console. */
function isOutside(href: string): boolean {
  return /^https?:\/\/[^/]/i.test(href) && URL.canParse(href)
}
