/// A column of numbers that takes four bytes for each as long as all of them
/// fit, as ids and epochs nearly always do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Column {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Default for Column {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

impl Column {
    /// Returns the number at `row`, which exists.
    pub(super) fn get(&self, row: usize) -> u64 {
        match self {
            Self::Narrow(values) => u64::from(values[row]),
            Self::Wide(values) => values[row],
        }
    }

    pub(super) fn push(&mut self, value: u64) {
        match (&mut *self, u32::try_from(value)) {
            (Self::Narrow(values), Ok(value)) => values.push(value),
            (Self::Narrow(_), Err(_)) => {
                self.widen();
                self.push(value);
            }
            (Self::Wide(values), _) => values.push(value),
        }
    }

    /// Replaces the number at `row`, which exists.
    pub(super) fn set(&mut self, row: usize, value: u64) {
        match (&mut *self, u32::try_from(value)) {
            (Self::Narrow(values), Ok(value)) => values[row] = value,
            (Self::Narrow(_), Err(_)) => {
                self.widen();
                self.set(row, value);
            }
            (Self::Wide(values), _) => values[row] = value,
        }
    }

    fn widen(&mut self) {
        if let Self::Narrow(values) = self {
            *self = Self::Wide(values.iter().map(|value| u64::from(*value)).collect());
        }
    }

    /// Gives back what was kept for growing.
    pub(super) fn shrink(&mut self) {
        match self {
            Self::Narrow(values) => values.shrink_to_fit(),
            Self::Wide(values) => values.shrink_to_fit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_come_back_as_they_went_in() {
        let values = [0, 7, u64::from(u32::MAX), 1 << 32, u64::MAX, 3];
        let mut column = Column::default();
        for value in values {
            column.push(value);
        }
        let read: Vec<u64> = (0..values.len()).map(|row| column.get(row)).collect();
        assert_eq!(read, values);

        let mut column = Column::default();
        column.push(1);
        column.push(2);
        column.set(0, 5);
        assert!(matches!(column, Column::Narrow(_)));
        column.set(1, u64::MAX);
        assert_eq!((column.get(0), column.get(1)), (5, u64::MAX));
    }
}
