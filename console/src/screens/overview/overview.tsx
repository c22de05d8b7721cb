// Overview of an organization: panels that load independently, each with a link to its list.
import { can, isKnown } from '../../app/session.ts'
import { findGroup } from '../../data/names.ts'
import type { Group } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { nameOf, Screen } from '../../ui/screen.tsx'
import { Shown } from '../../ui/states.tsx'
import { words } from '../../words.ts'
import { DryRunPanel } from './dry-run-panel.tsx'
import { ImagesPanel } from './images-panel.tsx'
import { MirrorsPanel, WebhooksPanel } from './integrations-panels.tsx'
import { StoragePanel } from './storage-panel.tsx'
import { UpdatesPanel } from './updates-panel.tsx'

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
      <UpdatesPanel names={names} group={uid} />
    </div>
  )
}
