//! [`Row`]: a row of a table that is read row by row.

use super::schema::{Column, ColumnKind, Schema, line_of};
use super::{Csv, RowReader};
use csv::StringRecord;
use namegrad_autograd::Tensor;
use namegrad_core::Result;
use std::sync::Arc;

/// A row of [`Csv::stream`].
#[derive(Clone, Debug)]
pub struct Row {
    schema: Arc<Schema>,
    record: StringRecord,
}

impl Row {
    /// The number in a column.
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if there is no such column,
    /// [`ErrorKind::Format`](namegrad_core::ErrorKind::Format) if the field is not a finite number.
    pub fn number(&self, column: impl Into<Column>) -> Result<f64> {
        self.schema.number(&self.record, self.schema.find(&column.into())?)
    }

    /// The numbers in some columns, `[feature]` in `f32`.
    ///
    /// # Errors
    /// Same as [`number`](Self::number).
    pub fn numbers<C: Into<Column>>(&self, columns: impl IntoIterator<Item = C>) -> Result<Tensor> {
        let number = |column: C| Ok(self.number(column)? as f32);
        let numbers = crate::list::<_, Result<Vec<f32>>>(columns.into_iter().map(number))?;
        Tensor::from_slice(&numbers, [("feature", numbers.len())])
    }

    /// The number of the category in a column whose categories were given.
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if there is no such column or it has no
    /// categories, [`ErrorKind::Format`](namegrad_core::ErrorKind::Format) if the field is not one of them.
    pub fn category(&self, column: impl Into<Column>) -> Result<i64> {
        let column = self.schema.find(&column.into())?;
        let ColumnKind::Categories(Some(given)) = &self.schema.kinds[column] else {
            return Err(Csv::refused(format!("{} has no categories", self.schema.called(column)))
                .with_repair("Csv::new(path).categories_of(column, [..])"));
        };
        let category = self.schema.category(&self.record, column)?;
        let number = given.iter().position(|own| own == category);
        number.map(|number| number as i64).ok_or_else(|| self.schema.no_category(&self.record, column, given))
    }

    /// The text in a column, as it is in the file.
    ///
    /// # Errors
    /// [`ErrorKind::Value`](namegrad_core::ErrorKind::Value) if there is no such column.
    pub fn text(&self, column: impl Into<Column>) -> Result<&str> {
        Ok(&self.record[self.schema.find(&column.into())?])
    }

    /// The line of the file, from 1.
    pub fn line(&self) -> u64 {
        line_of(&self.record)
    }
}

impl Iterator for RowReader {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        let mut record = StringRecord::new();
        match self.read(&mut record) {
            Ok(true) => Some(Ok(Row { schema: self.schema.clone(), record })),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}
