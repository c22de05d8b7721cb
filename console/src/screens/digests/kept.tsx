// Whether something keeps a digest, and until when.
import { paths } from '../../app/paths.ts'
import { may } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import type { Kept } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { Digest, Time } from '../../ui/text.tsx'
import { words } from '../../words.ts'

type Props = { names: readonly string[]; repo: string; digest: string }

export function KeptUntil({ names, repo, digest }: Props) {
  const read = useLoad(`promise ${repo} ${digest}`, (signal) =>
    ask<Kept>('GET', `/registry/v2/repos/${repo}/promises/${digest}`, { signal }),
  )
  if (read.error instanceof Refusal && read.error.status === 404) return <Empty>{words.notHeld}</Empty>
  return (
    <Shown of={read}>
      {({ reason, until, tags, keptWith }) => (
        <>
          <p>
            {words.keptBy[reason]}{' '}
            {until ? (
              <>
                {words.keptUntil} <Time at={until} />.
              </>
            ) : (
              reason !== 'REASON_UNSPECIFIED' && words.keptWithoutEnd
            )}
          </p>
          {tags.length > 0 && (
            <p>
              <bdi>{words.keptFor(tags.join(', '))}</bdi>
            </p>
          )}
          {keptWith !== '' && (
            <p>
              {words.keptWith} <Digest of={keptWith} href={paths.digest(names, keptWith)} />
            </p>
          )}
          {may('registry.settings.update', repo) && (
            <p>
              <a href={`${paths.repo(names)}?view=promises`}>{words.rulesHere}</a>
            </p>
          )}
        </>
      )}
    </Shown>
  )
}
