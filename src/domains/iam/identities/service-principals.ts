// The names of the product's own services, read from the contract like the capabilities.
import { ServicePrincipal, ServicePrincipalSchema } from '#gen/pinfold/iam/v2/identities_pb.ts'

const prefix = 'SERVICE_PRINCIPAL_'

/** The contract's number for a name such as `INGESTER`, also written `SERVICE_PRINCIPAL_INGESTER`; undefined for others. */
export function servicePrincipalNamed(name: string): number | undefined {
  const known = ServicePrincipalSchema.values.find((value) => value.name === name || value.name === prefix + name)
  return known?.number === ServicePrincipal.UNSPECIFIED ? undefined : known?.number
}
