// Tag in a view: the image name with the view, the served digest, the digests that the view skips, and the digest that it serves
// next.
import { paths } from '../../app/paths.ts'
import { go, here } from '../../app/route.ts'
import { me } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import type { Resolution } from '../../data/types.ts'
import { Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Code, Copy, Digest, Time } from '../../ui/text.tsx'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { pinOf } from '../start/start.tsx'
import { viewName } from './view-names.ts'

type Props = {
  names: readonly string[]
  repo: string
  tag: string
  at: string | undefined
  age: string
  hold: string
}

export function TagView({ names, repo, tag, at, age, hold }: Props) {
  const choose = ({ age: typed = '', hold: typedHold = '' }: Record<string, string>) =>
    go(paths.with(here(), { age: typed || undefined, hold: typed === '' ? undefined : typedHold || undefined }))
  const view = viewName(at, age, hold)
  return (
    <>
      <h2>{tagWords.viewTitle}</h2>
      <p class="dim">{tagWords.viewText}</p>
      <Form
        key={`${age} ${hold}`}
        isLine
        submit={tagWords.showView}
        onSubmit={choose}
        fields={[
          { name: 'age', label: tagWords.viewAge, hint: tagWords.ageHint, value: age, isOptional: true },
          { name: 'hold', label: tagWords.viewHold, hint: tagWords.holdHint, value: hold, isOptional: true },
        ]}
      />
      {view !== '' && (
        <>
          <Code text={`${me.host}/${view}/${names.join('/')}:${tag}`} label={tagWords.copyView} />
          <ResolvedTag names={names} repo={repo} tag={tag} at={at} age={age} hold={hold} />
        </>
      )}
    </>
  )
}

function ResolvedTag({ names, repo, tag, at, age, hold }: Props) {
  const read = useLoad(`view ${repo} ${tag} ${at} ${age} ${hold}`, (signal) => {
    const query = { at, minAge: age, hold }
    const path = `/registry/v2/repos/${repo}/resolvedTags/${encodeURIComponent(tag)}`
    return ask<Partial<Resolution>>('GET', path, { query, signal })
  })
  const link = (digest: string) => <Digest of={digest} href={paths.digest(names, digest)} />
  return (
    <Shown of={read}>
      {({ chosen, reason = '', next, skipped = [] }) => (
        <>
          {chosen ? (
            <p role="status">
              {tagWords.viewServes} {link(chosen.digest)}{' '}
              <Copy isPin text={pinOf(names, chosen.digest)} label={tagWords.copyWithDigestOfView}>
                {tagWords.copyWithDigest}
              </Copy>{' '}
              <span class="dim">
                {words.since} <Time at={chosen.assignTime} />
                {chosen.imported && `, ${tagWords.importedTime}`}
              </span>
            </p>
          ) : (
            <Empty>{tagWords.viewReasons[reason] ?? reason}</Empty>
          )}
          {next && (
            <p>
              {tagWords.viewNext} {link(next.digest)} {tagWords.viewFrom} <Time at={next.eligibleTime} />
            </p>
          )}
          {skipped.length > 0 && (
            <Table
              caption={tagWords.skippedDigests}
              isCaptionShown
              items={skipped}
              keyOf={({ digest, assignTime }) => `${digest} ${assignTime}`}
              columns={[
                { title: words.digest, isHead: true, cell: ({ digest }) => link(digest) },
                { title: words.from, cell: ({ assignTime }) => <Time at={assignTime} /> },
                { title: words.reason, cell: (one) => tagWords.skipReasons[one.reason] ?? one.reason },
                { title: tagWords.eligibleFrom, cell: ({ eligibleTime }) => <Time at={eligibleTime} /> },
              ]}
            />
          )}
        </>
      )}
    </Shown>
  )
}
