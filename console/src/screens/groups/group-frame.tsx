// Frame around each page of an organization or a folder. It finds the group, and then shows the page.
import type { ComponentChildren } from 'preact'
import { type NounName, nounPageAt, nounPath, usableNouns } from '../../app/nouns.ts'
import { paths } from '../../app/paths.ts'
import { findGroup, type WithPath } from '../../data/names.ts'
import type { Group } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { nameOf, Screen, trailOf } from '../../ui/screen.tsx'
import { Shown } from '../../ui/states.tsx'
import { words } from '../../words.ts'

type Props = {
  names: readonly string[]
  /** Segments of the address after `~`. */
  tail: readonly string[]
  actions?: ComponentChildren
  children: (group: Group, read: WithPath<Group>) => ComponentChildren
}

export function GroupFrame({ names, tail, actions, children }: Props) {
  const read = useLoad(`path ${names.join('/')}`, () => findGroup(names))
  return (
    <GroupPage names={names} tail={tail} actions={actions}>
      <Shown of={read}>{(found) => children(found.item, found)}</Shown>
    </GroupPage>
  )
}

type PageProps = Omit<Props, 'children'> & { children: ComponentChildren }

/**
 * Header of a page. In an organization, the noun is the title. In a folder, the name of the folder is the title, and the nouns are
 * tabs.
 */
export function GroupPage({ names, tail, actions, children }: PageProps) {
  const { noun, page } = nounPageAt(tail)!
  const isFolder = names.length > 1
  const pages = noun.pages.map((one) => ({
    ...{ label: one.label, href: paths.group(names, ...one.tail), isNow: one === page },
  }))
  const title = isFolder ? nameOf(names.at(-1)!) : words.nouns[noun.name]
  const above = isFolder ? [...names].reverse().map(nameOf) : [nameOf(names[0]!)]
  const kind = noun.pages.length > 1 ? [page.label] : []
  return (
    <Screen
      title={title}
      trail={isFolder ? trailOf(names) : []}
      tabs={isFolder ? folderTabs(names, noun.name) : pages}
      subTabs={isFolder ? pages : []}
      actions={actions}
      documentTitle={[...kind, words.nouns[noun.name], ...above]}
    >
      {children}
    </Screen>
  )
}

function folderTabs(names: readonly string[], now: NounName) {
  return usableNouns()
    .filter(({ name }) => name !== 'overview')
    .map((noun) => ({
      label: words.nouns[noun.name],
      href: noun.name === 'repositories' ? paths.group(names) : nounPath(noun, names),
      isNow: noun.name === now,
    }))
}
