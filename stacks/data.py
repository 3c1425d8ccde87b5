"""HourbellData: the tables."""

from aws_cdk import CfnOutput, CfnResource, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks import tables
from stacks.settings import Billing, Encryption, Settings

TYPES = {"S": dynamodb.AttributeType.STRING}
# Below it, scaling has room to add capacity before requests are throttled.
TARGET_PERCENT = 70


class DataStack(Stack):
    """Every table of schemas/tables.json.

    `TableV2` (a global table with one replica, priced like a plain one) because a
    second region can be added to it later without copying the data.

    Attributes:
        tables: by logical name.
        key: the customer's key, if there is one.
    """

    def __init__(self, scope: Construct, construct_id: str, settings: Settings) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=settings.stack_name("Data"),
            description="Hourbell: tables",
            termination_protection=settings.termination_protection,
        )
        self._settings = settings
        self.key = self._make_key()
        self.tables = {
            name: self._make_table(spec) for name, spec in tables.load().items()
        }

    def _make_key(self) -> kms.Key | None:
        if self._settings.encryption is not Encryption.CUSTOMER:
            return None
        return kms.Key(
            self,
            "Key",
            alias=f"alias/{self._settings.name('data')}",
            description="Encrypts Hourbell's tables",
            enable_key_rotation=True,
            removal_policy=self._settings.removal_policy,
        )

    def _make_table(self, spec: tables.TableSpec) -> dynamodb.TableV2:
        table = dynamodb.TableV2(
            self,
            spec.name.capitalize(),
            table_name=self._settings.name(spec.name),
            partition_key=_attribute(spec.partition_key),
            sort_key=_attribute(spec.sort_key),
            global_secondary_indexes=[
                dynamodb.GlobalSecondaryIndexPropsV2(
                    index_name=index.name,
                    partition_key=_attribute(index.partition_key),
                    sort_key=_attribute(index.sort_key),
                    projection_type=dynamodb.ProjectionType.INCLUDE,
                    non_key_attributes=list(index.include),
                )
                for index in spec.indexes
            ],
            dynamo_stream=dynamodb.StreamViewType[spec.stream] if spec.stream else None,
            time_to_live_attribute=spec.ttl,
            billing=self._billing(),
            warm_throughput=self._warm_throughput(spec),
            encryption=self._encryption(),
            point_in_time_recovery_specification=(
                dynamodb.PointInTimeRecoverySpecification(
                    point_in_time_recovery_enabled=True
                )
            ),
            deletion_protection=self._settings.keeps_data,
            removal_policy=self._settings.removal_policy,
        )
        self._use_key(table)
        CfnOutput(self, f"{spec.name.capitalize()}Table", value=table.table_name)
        return table

    def _billing(self) -> dynamodb.Billing:
        if self._settings.billing is Billing.ON_DEMAND:
            return dynamodb.Billing.on_demand()
        # The seed is what a table gets that comes from on-demand.
        capacity = dynamodb.Capacity.autoscaled(
            min_capacity=self._settings.min_capacity,
            max_capacity=self._settings.max_capacity,
            seed_capacity=self._settings.min_capacity,
            target_utilization_percent=TARGET_PERCENT,
        )
        return dynamodb.Billing.provisioned(
            read_capacity=capacity, write_capacity=capacity
        )

    def _encryption(self) -> dynamodb.TableEncryptionV2:
        if self._settings.encryption is Encryption.OWNED:
            return dynamodb.TableEncryptionV2.dynamo_owned_key()
        return dynamodb.TableEncryptionV2.aws_managed_key()

    def _use_key(self, table: dynamodb.TableV2) -> None:
        """Put the customer's key in place of AWS's.

        `TableEncryptionV2.customer_managed_key` would ask for a region, which these
        stacks learn only when they are deployed.
        """
        resource = table.node.default_child
        if self.key is not None and isinstance(resource, CfnResource):
            resource.add_property_override(
                "Replicas.0.SSESpecification.KMSMasterKeyId", self.key.key_arn
            )

    def _warm_throughput(
        self, spec: tables.TableSpec
    ) -> dynamodb.WarmThroughput | None:
        """Warm the table whose keys are new every minute, and only that one."""
        writes, reads = self._settings.warm_writes, self._settings.warm_reads
        if spec.stream is None or not (writes or reads):
            return None
        return dynamodb.WarmThroughput(
            write_units_per_second=writes or None, read_units_per_second=reads or None
        )


def _attribute(part: tables.KeyPart) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=part.name, type=TYPES[part.type])
