// Readme of a repository. It is rendered as a few kinds of elements; HTML in the readme is shown as text.
import { ask } from '../../data/api.ts'
import { type Block, type Inline, readMarkdown } from '../../data/markdown.ts'
import { useLoad } from '../../ui/load.ts'
import { Empty, Note, Shown } from '../../ui/states.tsx'
import { repoWords } from '../../words/repos.ts'

export function Readme({ repo }: { repo: string }) {
  const read = useLoad(`readme ${repo}`, (signal) =>
    ask<{ content: string }>('GET', `/registry/v2/repos/${repo}/readme`, { signal }),
  )
  return (
    <Shown of={read}>
      {({ content }) => (content.trim() === '' ? <Empty>{repoWords.noReadme}</Empty> : <Markdown text={content} />)}
    </Shown>
  )
}

function Markdown({ text }: { text: string }) {
  const { blocks, isCut } = readMarkdown(text)
  return (
    <div class="readme">
      {blocks.map((block, i) => (
        // The order of the blocks never changes, so the index can be the key.
        <BlockView key={i} block={block} />
      ))}
      {isCut && <Note>{repoWords.readmeCut}</Note>}
    </div>
  )
}

function BlockView({ block }: { block: Block }) {
  if (block.is === 'code') {
    return (
      <pre tabIndex={0}>
        <code>{block.text}</code>
      </pre>
    )
  }
  if (block.is === 'list') {
    const items = block.items.map((inlines, i) => (
      <li key={i}>
        <Line inlines={inlines} />
      </li>
    ))
    return block.isNumbered ? <ol>{items}</ol> : <ul>{items}</ul>
  }
  const line = <Line inlines={block.inlines} />
  if (block.is === 'heading') return <h2>{line}</h2>
  return block.is === 'quote' ? <blockquote>{line}</blockquote> : <p>{line}</p>
}

function Line({ inlines }: { inlines: readonly Inline[] }) {
  return <bdi>{inlines.map(partOf)}</bdi>
}

function partOf(one: Inline) {
  if (one.is === 'link') {
    return (
      <a href={one.href} rel="noopener noreferrer nofollow" target="_blank">
        {one.text}
      </a>
    )
  }
  if (one.is === 'code') return <code>{one.text}</code>
  if (one.is === 'strong') return <strong>{one.text}</strong>
  if (one.is === 'em') return <em>{one.text}</em>
  return one.text
}
