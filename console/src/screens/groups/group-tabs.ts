// Tabs of a group. Each has a folder in screens/ and a row in app/screens.tsx.
import { paths } from '../../app/paths.ts'
import { groupWords } from '../../words/groups.ts'

const views = [
  '',
  'access',
  'why',
  'people',
  'keyless',
  'promises',
  'pulls',
  'gates',
  'risks',
  'mirrors',
  'events',
  'audit',
  'settings',
] as const
export type GroupView = (typeof views)[number]

export function groupTabs(names: readonly string[], now: GroupView) {
  return views.map((view) => ({
    label: groupWords.groupViews[view],
    href: view === '' ? paths.group(names) : paths.group(names, view),
    isNow: view === now,
  }))
}
