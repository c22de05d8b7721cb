// Retention of a digest: the rule or legal hold that prevents its deletion, and the date until which it does.
import { paths } from '../../app/paths.ts'
import { go } from '../../app/route.ts'
import { can } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import type { Kept } from '../../data/types.ts'
import { FormButton } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { Digest, hex8, Time } from '../../ui/text.tsx'
import { digestWords } from '../../words/digests.ts'
import { retentionWords } from '../../words/retention.ts'
import { ruleWords } from '../../words/rules.ts'
import { words } from '../../words.ts'

type Props = { names: readonly string[]; repo: string; digest: string }

export function DigestRetention({ names, repo, digest }: Props) {
  const read = useLoad(`promise ${repo} ${digest}`, (signal) =>
    ask<Kept>('GET', `/registry/v2/repos/${repo}/promises/${digest}`, { signal }),
  )
  if (read.error instanceof Refusal && read.error.status === 404) return <Empty>{digestWords.digestMissing}</Empty>
  return (
    <Shown of={read}>
      {/* The API omits an enum that has its zero value. */}
      {({ reason = 'REASON_UNSPECIFIED', until, tags, keptWith }) => (
        <>
          <p>
            {digestWords.keptBy[reason]}{' '}
            {until ? (
              <>
                {digestWords.keptUntil} <Time at={until} />.
              </>
            ) : (
              reason !== 'REASON_UNSPECIFIED' && digestWords.keptWithoutEnd
            )}
          </p>
          {tags.length > 0 && (
            <p>
              <bdi>
                {(reason === 'REASON_UNSPECIFIED' ? digestWords.currentTagsOf : digestWords.keptFor)(tags.join(', '))}
              </bdi>
            </p>
          )}
          {keptWith !== '' && keptWith !== digest && (
            <p>
              {digestWords.keptWith} <Digest of={keptWith} href={paths.digest(names, keptWith)} />
            </p>
          )}
          {can('registry.settings.update', repo) && (
            <DigestActions names={names} repo={repo} digest={digest} onChange={read.reload} />
          )}
        </>
      )}
    </Shown>
  )
}

/** Buttons that put the digest under a legal hold or a quarantine. */
function DigestActions({ names, repo, digest, onChange }: Props & { onChange: () => void }) {
  const reason = [{ name: 'reason', label: words.reason }]
  return (
    <p>
      <FormButton
        button={retentionWords.hold}
        label={ruleWords.actionOn(retentionWords.hold, hex8(digest))}
        fields={reason}
        act={async (values) => {
          await ask('POST', `/registry/v2/holds/${repo}`, { body: { digest, reason: values.reason } })
          onChange()
        }}
      />{' '}
      <FormButton
        button={retentionWords.quarantine}
        label={ruleWords.actionOn(retentionWords.quarantine, hex8(digest))}
        fields={[{ ...reason[0]!, hint: retentionWords.quarantineHint }]}
        act={async (values) => {
          const body = { digest, reason: values.reason }
          await ask('POST', `/registry/v2/quarantined/${repo}:quarantine`, { body })
          go(`${paths.repo(names)}?view=promises`)
        }}
      />{' '}
      <a href={`${paths.repo(names)}?view=promises`}>{digestWords.retentionOfRepo}</a>
    </p>
  )
}
