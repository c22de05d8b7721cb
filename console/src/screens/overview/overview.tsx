// Overview of an organization: panels that load independently, each with a link to its list.
import { paths } from '../../app/paths.ts'
import { can, isKnown, me } from '../../app/session.ts'
import { readPage } from '../../data/list.ts'
import { findGroup } from '../../data/names.ts'
import type { Group, Tag } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { nameOf, Screen } from '../../ui/screen.tsx'
import { Empty, Shown } from '../../ui/states.tsx'
import { overviewWords } from '../../words/overview.ts'
import { startWords } from '../../words/start.ts'
import { words } from '../../words.ts'
import { TagTable, withNames } from '../start/start.tsx'
import { DryRunPanel } from './dry-run-panel.tsx'
import { ImagesPanel } from './images-panel.tsx'
import { MirrorsPanel, WebhooksPanel } from './integrations-panels.tsx'
import { Panel } from './panel.tsx'
import { StoragePanel } from './storage-panel.tsx'

const shownTags = 10

export function OverviewScreen({ names }: { names: readonly string[] }) {
  const group = useLoad(`overview ${names.join('/')}`, async () => (await findGroup(names)).item)
  return (
    <Screen title={words.nouns.overview} documentTitle={[words.nouns.overview, nameOf(names[0]!)]}>
      <Shown of={group}>{(item) => <Panels names={names} group={item} />}</Shown>
    </Screen>
  )
}

type Props = { names: readonly string[]; group: Group }

/** Panels without permission are left out. */
function Panels({ names, group: { uid } }: Props) {
  return (
    <div class="overview">
      {isKnown() && (
        <>
          <div class="beside">
            {can('vuln_reports.list', uid) && can('tag.list', uid) && <ImagesPanel names={names} group={uid} />}
          </div>
          <div class="beside">
            {can('repo.check_policies', uid) && can('tag.list', uid) && <DryRunPanel names={names} group={uid} />}
            {can('repo.list', uid) && <MirrorsPanel names={names} group={uid} />}
            {can('subscriptions.list', uid) && <WebhooksPanel names={names} group={uid} />}
            {can('groups.list', uid) && <StoragePanel names={names} group={uid} />}
          </div>
        </>
      )}
      <RecentUpdates names={names} group={uid} />
    </div>
  )
}

function RecentUpdates({ names, group }: { names: readonly string[]; group: string }) {
  const moves = useLoad(`recent updates ${group}`, async (signal) => {
    const query = { 'uidp.descendantsOf': group, orderBy: 'update_time desc' }
    const { items } = await readPage<Tag>('/registry/v2/tags', 'tags', { size: shownTags, query, signal })
    return Promise.all(items.map((tag) => withNames(tag, signal)))
  })
  const link = { text: overviewWords.allRepositories, href: paths.group(names, 'repositories') }
  return (
    <Panel title={startWords.recentUpdates} link={link} isWide>
      <Shown of={moves}>
        {(tags) =>
          tags.length === 0 ? (
            <Empty command={`docker push ${me.host}/${names[0]}/NAME:TAG`}>{startWords.noTagsAnywhere}</Empty>
          ) : (
            <TagTable caption={startWords.recentUpdates} tags={tags} isInOrganization />
          )
        }
      </Shown>
    </Panel>
  )
}
