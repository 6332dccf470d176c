//! The frame that the conformance suites of this crate share.

/// Declares the checks of a suite: the enum `Check` with `ALL`, `name` and
/// `Display`, and `Violation`, which tells of a check that failed. Each check has
/// its name after an arrow.
macro_rules! checks {
    (
        $(#[$meta:meta])*
        pub enum Check {
            $($(#[$variant_meta:meta])* $variant:ident => $name:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum Check {
            $($(#[$variant_meta])* $variant,)+
        }

        impl Check {
            /// Every check, in the order in which [`run`] runs them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name of the check, in snake case.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl std::fmt::Display for Check {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        /// A check that failed: its name, and what was wrong.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct Violation {
            /// The check.
            pub check: Check,
            /// What was wrong.
            pub message: String,
        }

        impl std::fmt::Display for Violation {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}: {}", self.check, self.message)
            }
        }

        impl std::error::Error for Violation {}
    };
}

pub(crate) use checks;

#[cfg(test)]
#[expect(unreachable_pub)]
mod tests {
    checks! {
        /// Checks of nothing.
        pub enum Check {
            /// One.
            FirstOne => "first_one",
            /// Another.
            Second => "second",
        }
    }

    #[test]
    fn each_check_is_listed_with_its_name() {
        assert_eq!(Check::ALL, [Check::FirstOne, Check::Second]);
        assert_eq!(Check::ALL.map(Check::name), ["first_one", "second"]);
        let violation = Violation {
            check: Check::FirstOne,
            message: "odd".to_owned(),
        };
        assert_eq!(violation.to_string(), "first_one: odd");
    }
}
