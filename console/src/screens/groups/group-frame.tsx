// Frame around each tab of a group. It finds the group, and then shows the tab.
import type { ComponentChildren } from 'preact'
import { findGroup, type WithPath } from '../../data/names.ts'
import type { Group } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { nameOf, Screen, trailOf } from '../../ui/screen.tsx'
import { Shown } from '../../ui/states.tsx'
import { groupWords } from '../../words/groups.ts'
import { type GroupView, groupTabs } from './group-tabs.ts'

type Props = {
  names: readonly string[]
  view: GroupView
  children: (group: Group, read: WithPath<Group>) => ComponentChildren
}

export function GroupFrame({ names, view, children }: Props) {
  const read = useLoad(`path ${names.join('/')}`, () => findGroup(names))
  const title = groupWords.viewOf(groupWords.groupViews[view], nameOf(names.at(-1)!))
  return (
    <Screen title={title} trail={trailOf([...names, ''])} tabs={groupTabs(names, view)}>
      <Shown of={read}>{(found) => children(found.item, found)}</Shown>
    </Screen>
  )
}
