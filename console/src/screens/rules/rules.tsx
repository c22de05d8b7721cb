// The rules of a group, as views of it.
import { GroupFrame } from '../groups/group-frame.tsx'
import { Gates } from './gates.tsx'
import { Promises } from './promises.tsx'
import { PullRules } from './pulls.tsx'
import { Risks } from './risks.tsx'

type Props = { names: readonly string[]; query: URLSearchParams }

export function PromisesScreen({ names, query }: Props) {
  return (
    <GroupFrame names={names} view="promises">
      {({ uid }, { groups }) => <Promises at={{ uid, groups }} query={query} />}
    </GroupFrame>
  )
}

export function PullsScreen({ names, query }: Props) {
  return (
    <GroupFrame names={names} view="pulls">
      {({ uid }, { groups }) => <PullRules at={{ uid, groups }} query={query} />}
    </GroupFrame>
  )
}

export function GatesScreen({ names, query }: Props) {
  return (
    <GroupFrame names={names} view="gates">
      {({ uid }, { groups }) => <Gates at={{ uid, groups }} query={query} />}
    </GroupFrame>
  )
}

export function RisksScreen({ names, query }: Props) {
  return (
    <GroupFrame names={names} view="risks">
      {({ uid }, { groups }) => <Risks at={{ uid, groups }} query={query} />}
    </GroupFrame>
  )
}
