// Screens of the policies of a group.
import { GroupFrame } from '../groups/group-frame.tsx'
import { AdmissionPolicies } from './admission.tsx'
import { CooldownPolicies } from './cooldown.tsx'
import { Retention } from './retention.tsx'
import { Risks } from './risks.tsx'

type Props = { names: readonly string[]; query: URLSearchParams }

export function RetentionScreen({ names, query }: Props) {
  return (
    <GroupFrame names={names} tail={['policies', 'retention']}>
      {({ uid }, { groups }) => <Retention at={{ uid, groups }} query={query} />}
    </GroupFrame>
  )
}

export function CooldownScreen({ names, query }: Props) {
  return (
    <GroupFrame names={names} tail={['policies', 'cooldown']}>
      {({ uid }, { groups }) => <CooldownPolicies at={{ uid, groups }} query={query} />}
    </GroupFrame>
  )
}

export function AdmissionScreen({ names, query }: Props) {
  return (
    <GroupFrame names={names} tail={['policies', 'admission']}>
      {({ uid }, { groups }) => <AdmissionPolicies at={{ uid, groups }} query={query} />}
    </GroupFrame>
  )
}

export function RisksScreen({ names, query }: Props) {
  return (
    <GroupFrame names={names} tail={['policies', 'risks']}>
      {({ uid }, { groups }) => <Risks at={{ uid, groups }} query={query} />}
    </GroupFrame>
  )
}
